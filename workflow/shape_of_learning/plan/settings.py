"""The configuration: the type, default, bounds and meaning of each key.

A paper adds a section by a class in its `settings.py`, such as `BlockEditing` for `block_editing`.

The tables of docs/reference/configuration.md and config/schema.json are written from here (`make reference`);
values of `config/config.yaml`, which users copy, are the same.
"""

import math
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema, create_model, model_validator

from shape_of_learning.errors import InputError
from shape_of_learning.files import expand_home
from shape_of_learning.metrics.measure_entry import AllowedRange, Measure, Value
from shape_of_learning.metrics.registry import DEFAULT_MEASURES, find_measure, list_measure_names
from shape_of_learning.plan.entries import Precision
from shape_of_learning.tasks.entry import TaskEntry
from shape_of_learning.training.recipe import TenThousand
from shape_of_learning.validation import (
    Name,
    Names,
    Section,
    ValidSection,
    Words,
    format_value,
    make_unknown_name_error,
    make_validation_error,
    must_be,
    number_reader,
    read_number,
    unique,
)

Sha1 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}\Z"), must_be("40 small hexadecimal digits")]
AlphabetSize = Annotated[int, Field(ge=1, le=1_114_112)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}\Z"), must_be("64 small hexadecimal digits")]


class Source(Section):
    """An entry of `corpus.sources`.

    Attributes
    ----------
    urls
        mirrors, tried in order (a new mirror reruns nothing); http(s), `file://` or a path; plain, zip, gz,
        bz2 or xz
    builtin
        replaces `urls`: `python_topics`, the help texts of Python
    format
        `mediawiki` (an XML export, which is cleaned) or `text` (used unchanged, except that lines end with LF)
    member
        the name of the file in a zip
    sha256
        SHA-256 of the unpacked file; another file is refused. Without `sha256` or `git_blob`, any file from the
        server is accepted
    git_blob
        git blob id of the unpacked file, if its SHA-256 is not published
    alphabet_size
        keep only this many characters, the most frequent ones (205 for enwik8); empty for all
    """

    urls: list[str] | None = Field(None, min_length=1)
    builtin: Literal["python_topics"] | None = None
    format: Literal["mediawiki", "text"]
    member: str | None = None
    sha256: Sha256 | None = None
    git_blob: Sha1 | None = None
    alphabet_size: AlphabetSize | None = None

    @model_validator(mode="after")
    def _check_origin(self) -> "Source":
        if (self.urls is None) == (self.builtin is None):
            raise make_validation_error("needs exactly one of `urls` or `builtin`")
        return self


class Corpus(Section):
    """The text from which windows are drawn.

    Attributes
    ----------
    source
        an entry of `corpus.sources`, or the path of your own text in UTF-8
    first_bytes
        use only this many bytes from the beginning of the corpus; empty for all
    alphabet_size
        keep only this many characters in each text, the most frequent ones; empty for the number of its source
    sources
        texts by name; see below
    """

    source: Annotated[Name, WithJsonSchema({"type": "string"})] = "enwik8"  # or a path
    first_bytes: int | None = Field(None, ge=1, le=10**15)
    alphabet_size: AlphabetSize | None = None
    sources: dict[Name, Source] = {}

    @model_validator(mode="before")
    @classmethod
    def _add_source_of_path(cls, values: Any) -> Any:
        """Add an entry for a source that is the path of a file."""
        if not isinstance(values, dict) or not isinstance(source := values.get("source"), str):
            return values
        sources = values.get("sources") or {}
        file = expand_home(source)
        if source in sources or not (file.exists() or os.sep in source):
            return values
        if not file.is_file():
            problem = "a folder" if file.is_dir() else "a pipe or a device"
            problem = problem if file.exists() else "missing"
            raise make_validation_error(
                f"names the source {format_value(source)}, which is {problem}; give the path of a text file"
            )
        name = re.sub("[^A-Za-z0-9]+", "_", file.stem).strip("_")[:50] or "text"
        if name in RUN_TEXTS:
            name = f"{name}_text"
        entry = {"urls": [str(file)], "format": "text"}
        return {**values, "source": name, "sources": {**sources, name: entry}}


# The texts of `choices.text` that are no sources: the windows of the run, and others of the same text.
RUN_TEXTS = ("own", "resampled")

# Folders of results/. A run cannot have one of these names.
RESERVED_RUN_NAMES = frozenset(
    (
        "benchmarks",
        "checkpoints",
        "choices",
        "claims",
        "controls",
        "corpus",
        "downloads",
        "embeddings",
        "figures",
        "finetuned",
        "logs",
        "losses",
        "massive",
        "measurements",
        "measurements_in_memory",
        "pretrained",
        "provenance",
        "tables",
        "tasks",
        "weight_points",
        "weights",
    )
)

Count = Annotated[int, Field(ge=1, le=100_000_000)]
Shares = Annotated[
    list[Annotated[float, Field(gt=0, le=1), number_reader]], Field(min_length=1), unique
]
Switch = Literal["keep", "drop"]
TokenTypes = Literal["all", "one"]
Sequences = Literal["all", "last_token", "mean"]
AverageOver = Literal["block_outputs", "all_layers"]
LastLayer = Literal["after_final_norm", "before_final_norm"]
nonempty_unique = (Field(min_length=1), unique)
# An upper limit for the mean of English text; the demo's tokenizer has 3.9.
MAX_CHARACTERS_PER_TOKEN = 5


class Sampling(Section):
    """The number and the length of windows.

    Attributes
    ----------
    windows
        windows of text per checkpoint
    window_characters
        characters of a window
    vectors_per_dimension
        draw more windows for wide models, to get about this many vectors per coordinate, at five characters per
        token; 0: the same windows for all models. Scores of linearity depend on it. With 16, Llama-2-7B gets 640
        windows
    """

    windows: Count = 128
    window_characters: Count = 512
    vectors_per_dimension: Annotated[float, Field(ge=0, le=1000), number_reader] = 0

    def count_windows(self, width: int) -> int:
        """Count the windows of a model with hidden states of a width; a wide model may have more."""
        characters = self.vectors_per_dimension * width * MAX_CHARACTERS_PER_TOKEN
        return max(self.windows, math.ceil(characters / self.window_characters))


class Forward(Section):
    """The forward pass of windows through a model.

    Attributes
    ----------
    precision
        `float32`, `bfloat16` or `float16`; a model's entry may override it
    last_layer
        `after_final_norm` (the library's last hidden state), `before_final_norm`, or `both`: then the last layer
        is the state after the norm, and measures that need the state before the norm get it, too
    threads
        cores for the forward pass of a large model; does not change the numbers
    """

    precision: Precision = "float32"
    last_layer: LastLayer | Literal["both"] = "after_final_norm"
    threads: TenThousand = 8


class Embeddings(Section):
    """The storage of hidden states.

    Attributes
    ----------
    dump
        `true`: a job writes the hidden states of all tokens to the disk, and other jobs read and measure them.
        `false`: one job per checkpoint keeps all layers in memory, measures them there (on a GPU if there is
        one), and writes no hidden states; its tables of measures are in `measurements_in_memory/`. The values are
        the same: byte by byte on a CPU, up to rounding of float64 on a GPU
    keep
        keep hidden states after they are measured
    """

    dump: bool = True
    keep: bool = False

    @model_validator(mode="after")
    def _check_keep(self) -> "Embeddings":
        if self.keep and not self.dump:
            raise make_validation_error(
                "has `keep: true`, but with `dump: false` no hidden states are written; change one of them"
            )
        return self


class Measurement(Section):
    """The measures of hidden states, and the vectors that are measured.

    Attributes
    ----------
    batch_vectors
        vectors in a batch for intrinsic dimensions, and the least number in a batch for isotropy and spectra;
        linearity and measures of windows take all vectors together
    neighbours
        the largest number of nearest neighbours of a vector that a measure can use. The search finds more (166
        for 128), so that enough neighbours remain without a group of windows
    special_tokens
        `keep` or `drop` the vectors at special tokens (the model sees these tokens in any case)
    first_token
        `keep` or `drop` the vector of each window's first token (for an encoder this is [CLS], a special token)
    token_types
        `all` tokens, or `one` of each token type: one vector for each entry of the vocabulary, among the tokens
        that the two keys above keep, drawn by the seed, at the same token in every layer and revision. A frequent
        token then weighs as much as a rare one. About a fifth of the tokens of 128 windows remain, less than a
        batch: raise `sampling.windows` (256 are enough for MiniLM), or lower `measurement.batch_vectors`
    massive_tokens
        `keep` or `drop` the tokens whose vector in any layer of the checkpoint is longer than five times the
        median over all tokens; the same tokens are dropped from all layers
    same_window
        `keep` or `drop` neighbours of a vector from its own window
    sequence
        `all`: a vector for each token that the keys above keep. `last_token` or `mean`: one vector for each
        window, that of its last kept token or the mean over its kept tokens. Then there are only as many vectors
        as windows: raise `sampling.windows` to `measurement.batch_vectors`, or lower `measurement.batch_vectors`
    estimators
        list of the measures in `measurements.csv`, `estimates.csv` and `changes.csv`. If a figure draws another
        measure, the run measures it for the models of the figure, and `estimates.csv` has it, too
    parameters
        settings of measures, by name: `{two_nn: {kept: 0.8}, mada: {k: 10, combine: median}}`
    """

    batch_vectors: int = Field(4096, ge=3, le=10**9)
    neighbours: int = Field(128, ge=2, le=1_000_000)
    special_tokens: Switch = "keep"
    first_token: Switch = "keep"
    token_types: TokenTypes = "all"
    massive_tokens: Switch = "keep"
    same_window: Switch = "keep"
    sequence: Sequences = "all"
    estimators: Annotated[Words, Field(min_length=1)] = [*DEFAULT_MEASURES]
    parameters: dict[str, dict[str, Any]] = {}

    @model_validator(mode="after")
    def _check_batch_vectors(self) -> "Measurement":
        if self.batch_vectors <= self.neighbours:
            raise make_validation_error(
                f"has batches of {self.batch_vectors} vectors (`measurement.batch_vectors`), but the "
                f"neighbour search looks for {self.neighbours} others (`measurement.neighbours`); "
                f"raise the former to {self.neighbours + 1} or more"
            )
        return self


ShownModels = Annotated[
    Literal["all"] | Names, must_be("`all` or a list of model names, each once")
]


class Figures(Section):
    """The models of figures; the names of the papers' figures and tables are further keys.

    Attributes
    ----------
    average_over
        `block_outputs` (layers 1 to L) or `all_layers` (0 to L)
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ShownModels] = Field(init=False)

    average_over: AverageOver = "block_outputs"

    @property
    def targets(self) -> dict[str, Any]:
        """Figure or table -> the models that the section names for it."""
        return self.__pydantic_extra__


Parameters = Annotated[dict[str, Any], Field(min_length=1)]
Estimator = Annotated[
    str | Annotated[dict[str, Parameters], Field(min_length=1, max_length=1)],
    must_be("the name of an estimator, or `{NAME: {PARAMETER: VALUE}}`"),
]


class Choices(Section):
    """Specification curves: each claim under every combination of options.

    Attributes
    ----------
    judged
        whether `all` includes claims under every specification; they always have their own target, `choices`
    papers
        list of papers with these claims; without a list, all papers of the run
    checkpoints
        the largest number of checkpoints of a training run, spaced evenly by rank, with the first and the last;
        the verdicts of target `claims` use all checkpoints
    text
        list of `own` (the windows of the run), `resampled` (as many windows of the same text, drawn with the next
        seed; in a short text a few are the same), and names of other texts in `corpus.sources`
    first_token
        list of options of `measurement.first_token`
    special_tokens
        list of options of `measurement.special_tokens`
    token_types
        list of options of `measurement.token_types`. If one vector per token type makes less than a batch, all
        vectors are one batch, and estimates of dimension depend on its size. With no more vectors than
        `measurement.neighbours`, nothing is measured
    massive_tokens
        list of options of `measurement.massive_tokens`; two options measure everything twice
    same_window
        list of options of `measurement.same_window`; two options search neighbours twice
    sequence
        list of options of `measurement.sequence`
    windows_share
        list of shares of the windows to keep. Each of the 16 groups keeps this share, rounded to whole windows,
        and at least one window. With 16 windows, a share of 0.5 therefore keeps all windows
    batch_share
        list of shares of `measurement.batch_vectors`
    average_over
        list of options of `figures.average_over`, which decides whether layer 0 counts
    last_layer
        list of options of `forward.last_layer`
    estimators
        lists of estimators that can replace each other, by the name of the choice; `two_nn: {kept: 0.2}` is an
        estimator with another value of a parameter. Estimators that need more neighbours than
        `measurement.neighbours` are left out. If a claim names several estimators of a list, only their parameters
        are a choice
    """

    judged: bool = False
    papers: Words | None = None
    checkpoints: int = Field(8, ge=3, le=1_000_000)
    text: Annotated[Names, Field(min_length=1)] = ["own", "resampled"]
    first_token: Annotated[list[Switch], *nonempty_unique] = ["keep", "drop"]
    special_tokens: Annotated[list[Switch], *nonempty_unique] = ["keep", "drop"]
    token_types: Annotated[list[TokenTypes], *nonempty_unique] = ["all", "one"]
    massive_tokens: Annotated[list[Switch], *nonempty_unique] = ["keep"]
    same_window: Annotated[list[Switch], *nonempty_unique] = ["keep", "drop"]
    sequence: Annotated[list[Sequences], *nonempty_unique] = ["all"]
    windows_share: Shares = [1.0, 0.5]
    batch_share: Shares = [1.0]
    average_over: Annotated[list[AverageOver], *nonempty_unique] = ["block_outputs", "all_layers"]
    last_layer: Annotated[list[LastLayer], *nonempty_unique] = [
        "after_final_norm",
        "before_final_norm",
    ]
    estimators: dict[Name, Annotated[list[Estimator], Field(min_length=1)]] = {}


Control = Literal[
    "shuffled_within_windows",
    "shuffled_unigram",
    "untrained",
    "gaussian",
    "gaussian_without_massive_tokens",
]


class Controls(Section):
    """Null models beside the models of figures that draw them.

    Attributes
    ----------
    kinds
        list of `shuffled_within_windows` (the tokens of each window in another order), `shuffled_unigram` (the
        tokens of all windows in another order), `untrained` (initial weights of the library), `gaussian` (random
        vectors with the mean and the covariance of each layer's hidden states; only for dimensions, since
        anisotropy and linearity follow from the covariance) and `gaussian_without_massive_tokens` (the same
        without massive tokens, which stretch a Gaussian along one direction)
    checkpoints
        the number of checkpoints of a training run, spaced evenly by rank, with the first and the last
    """

    kinds: Annotated[list[Control], *nonempty_unique] = [
        "shuffled_within_windows",
        "shuffled_unigram",
        "untrained",
        "gaussian",
        "gaussian_without_massive_tokens",
    ]
    checkpoints: int = Field(3, ge=2, le=1_000_000)


class Settings(Section):
    """The whole configuration.

    Attributes
    ----------
    run
        a name; results are then in `results/NAME/` instead of `results/`, so that configurations do not
        overwrite each other
    seed
        decides every random choice, except those of a fine-tuning, which has its own seed
    papers
        a list of folders of `workflow/papers/`: the run has the figures and tables of only these papers.
        Without a list: of the papers with a figure or table in section `figures`
    models
        names of entries of `models/*.yaml`; a gated model is left out with a note, unless there is a Hugging Face
        token whose account has accepted the licence
    bad_checkpoints
        the treatment of revisions whose weights do not belong to their names: `skip` leaves them out (captions name
        them, and those that hashes or reports show to be bad are not downloaded), `flag` draws them as open diamonds.
        Claims use none of them
    keep_checkpoints
        keep downloaded and fine-tuned weights after they are measured
    training_steps
        steps that replace those of entries, by model: `{pythia-14m: {log: 8}}`. A `pretraining` or `finetuning`
        does not need steps in its entry
    corpus, sampling, forward, embeddings, measurement, controls, choices
        sections; see below
    tasks
        labelled texts by name, made only if a fine-tuning needs them; see below
    figures
        a section. The name of a figure or table of `workflow/papers/*/paper.yaml` can be a further key, with a
        list of the models that it shows, or with `all`. Without this key, or if `models` has no model of the list,
        it shows all models that it can, or as many as fit
    """

    run: Annotated[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")] | None,
        must_be(
            "a name of up to 100 letters, digits, `_` and `-`, and begin with a letter or digit"
        ),
    ] = None
    seed: int = Field(0, ge=0, le=2**63 - 1)
    papers: Words | None = None
    models: Annotated[Names, Field(min_length=1)]
    bad_checkpoints: Literal["skip", "flag"] = "skip"
    keep_checkpoints: bool = False
    training_steps: dict[Name, Any] = {}
    corpus: Corpus = Corpus()
    sampling: Sampling = Sampling()
    forward: Forward = Forward()
    embeddings: Embeddings = Embeddings()
    measurement: Measurement = Measurement()
    tasks: dict[Name, TaskEntry] = {}
    figures: Figures = Figures()
    controls: Controls = Controls()
    choices: Choices = Choices()

    @model_validator(mode="after")
    def _check_run_name(self) -> "Settings":
        if (self.run or "").casefold() in RESERVED_RUN_NAMES:
            raise make_validation_error(
                f"has `run: {self.run}`, but results/{self.run} is a folder of the runs without a name; "
                "choose another name"
            )
        return self

    def find_section(self, kind: type[ValidSection]) -> ValidSection:
        """Find a section that a paper adds, by its class."""
        return next(section for _, section in self if isinstance(section, kind))

    def dump(self) -> dict[str, Any]:
        """Return the keys of the configuration files, and all keys of sections of papers, as plain values."""
        paper_sections = type(self).model_fields.keys() - Settings.model_fields.keys()
        return self.model_dump(exclude_unset=True) | self.model_dump(include=paper_sections)


def add_sections(sections: Mapping[str, type[Section]]) -> type[Settings]:
    """Return the configuration with the sections that papers add; every key of these sections has a default."""
    fields: dict[str, Any] = {
        name: (section, Field(section(), description="a section; see below"))
        for name, section in sections.items()
    }
    return create_model("Settings", __base__=Settings, __doc__=Settings.__doc__, **fields)


TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def choose_measures(
    measurement: Measurement, names: Collection[str], last_layer: str = "after_final_norm"
) -> dict[str, Measure]:
    """Look up measures and give them their settings.

    Parameters
    ----------
    measurement : Measurement
    names : collection of str
        The names of the measures, from ``measurement.estimators`` or from figures.
    last_layer : str
        ``forward.last_layer``.

    Raises
    ------
    InputError
        If a measure, a parameter or a value is unknown, if a measure needs more neighbours than are searched, or if it
        needs the state before the final norm and that state is not kept; also as :func:`list_measure_names` and
        :func:`find_measure`. The sentence names the key.
    """
    known_names, settings = list_measure_names(), measurement.parameters
    for key, key_names in (("estimators", names), ("parameters", settings)):
        for name in key_names:
            if name not in known_names:
                raise make_unknown_name_error(
                    name, known_names, "estimator", f"key `measurement.{key}`"
                )
    measures = {
        name: _choose_measure(name, measurement.neighbours, settings.get(name, {}))
        for name in dict.fromkeys([*names, *settings])
    }
    for name in names:
        if "last_layer" in measures[name].rows and last_layer != "both":
            raise InputError(
                f"measure `{name}` needs the last layer before the final norm, but configuration key "
                f"`forward.last_layer` is `{last_layer}`; set it to `both`"
            )
    return {name: measures[name] for name in names}


def _choose_measure(name: str, neighbours: int, settings: Mapping[str, Any]) -> Measure:
    default = find_measure(name)
    parameters = {
        key: _check_parameter(name, default, key, value) for key, value in settings.items()
    }
    measure = default.configure(name, parameters)
    _check_order(measure)
    if measure.family == "dimension" and not measure.neighbours:
        measure = replace(measure, neighbours=neighbours)
    if measure.family == "dimension" and int(measure.neighbours) > neighbours:
        raise InputError(
            f"measure `{name}` needs {measure.neighbours} neighbours, but `measurement.neighbours` is "
            f"{neighbours}; raise it to {measure.neighbours}"
        )
    return measure


def _check_order(measure: Measure) -> None:
    """Refuse a parameter that must be above another parameter of the measure and is not."""
    for key, allowed_values in measure.allowed.items():
        other = allowed_values.above_parameter if isinstance(allowed_values, AllowedRange) else ""
        value = measure.parameters[key]
        minimum = measure.parameters.get(other, -math.inf)
        if other and not value > minimum:  # type: ignore[operator]
            raise InputError(
                f"configuration key `measurement.parameters.{measure.name}`: `{key}` is {value}, but must be above "
                f"`{other}`, which is {minimum}; raise the former or lower the latter"
            )


def _check_parameter(name: str, measure: Measure, key: str, value: Any) -> Value:
    """Return the value of a parameter; refuse an unknown parameter, a wrong type or a value beyond its bounds."""
    where = f"configuration key `measurement.parameters.{name}"
    if key not in measure.parameters:
        raise make_unknown_name_error(key, measure.parameters, "parameter", f"{where}`")
    kind = type(measure.parameters[key])
    allowed_values: Any = measure.allowed.get(key)
    if kind is float:
        value = read_number(value)
        value = float(value) if type(value) is int else value
    is_finite = not isinstance(value, float) or math.isfinite(value)
    if type(value) is kind and is_finite and (allowed_values is None or value in allowed_values):
        return value
    requirement = TYPES[kind]
    if isinstance(allowed_values, AllowedRange):
        requirement = f"{requirement} {allowed_values}"
    elif allowed_values:
        requirement = f"one of {', '.join(f'`{choice}`' for choice in allowed_values)}"
    raise InputError(f"{where}.{key}` is {format_value(value)}, but must be {requirement}")
