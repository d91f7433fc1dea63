import pickle
import re
import sys

import numpy as np
import pytest

from shape_of_learning import gride
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.registry import MEASURES, find_registered_measures
from shape_of_learning.plan.settings import Measurement, choose_measures


def choose_registered(*names, last_layer="both", **parameters):
    measurement = Measurement(parameters=parameters)
    return choose_measures(measurement, names, last_layer)


def refuse_choice(*names, **options):
    with pytest.raises(InputError) as caught:
        choose_registered(*names, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_registered_measures_have_functions_and_can_be_pickled():
    for measure in choose_registered(*MEASURES).values():
        assert callable(measure.load())
        assert not measure.jackknife_function or callable(measure.load_jackknife())
        assert pickle.loads(pickle.dumps(measure)) == measure


def test_parameters_reach_function_and_description():
    measures = choose_registered("two_nn", "mada", two_nn={"kept": 0.35}, mada={"k": 4})
    assert measures["mada"].description == "MADA takes k = 4 neighbours (combine: mean)"
    assert measures["mada"].neighbours == 4
    # r_4 = 2 r_2: dimension 1.
    assert measures["mada"].load()([[1.0, 1.5, 2.0, 3.0]] * 9) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "pairs"}, "`family` must be one of isotropy, dimension, spectrum, linearity"),
        ({"family": "weights", "rows": {"first_token": "drop"}}, "not for the family weights"),
        ({"family": "spectrum", "jackknife_function": "without"}, "not for the family spectrum"),
        ({"family": "linearity", "rows": {"first_token": "lose"}}, "{'first_token': 'lose'}"),
        ({"family": "isotropy", "collapse": False}, "`collapse` may be false for a measure of two"),
    ],
)
def test_an_entry_with_contradictions_is_refused(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Measure(**{"function": "numpy:sum", "family": "isotropy"} | changes)


def test_a_measure_of_a_state_that_is_not_kept_is_refused_with_the_key():
    message = r"needs .*`forward\.last_layer` is .*; set it to `both`"
    with pytest.raises(InputError, match=message):
        choose_registered("intra_window_cosine_before_norm", last_layer="before_final_norm")


def test_only_two_nn_and_its_variants_have_a_limit_of_near_duplicates():
    suspect = {
        name
        for name, measure in choose_registered(*MEASURES).items()
        if measure.near_duplicate_limit
    }
    assert suspect == {"two_nn", "two_nn_authors", "gride_1"}
    assert choose_registered("two_nn")["two_nn"].near_duplicate_limit == 0.1


def test_measures_whose_intervals_do_not_cover_have_none():
    """docs/explanation/statistics.md has the coverage, and the measures whose jackknife values are not shrunk."""
    isotropies = {name for name in MEASURES if name.startswith("log_partition_isotropy")}
    linearities = {
        name for name in MEASURES if name.startswith("linearity") and "adjusted" not in name
    }
    sizes = {"mean_norm", "largest_coordinate", "kurtosis"}  # without a study of coverage
    assert {name for name, measure in MEASURES.items() if not measure.has_interval} == {
        *(*isotropies, *linearities, *sizes),
        *("directions_for_90", "gride_16", "gride_32", "gride_64"),
    }
    unshrunk_names = {name for name, measure in MEASURES.items() if not measure.shrinks_jackknife}
    assert unshrunk_names == {
        "mada",
        "mada_median",
        "mom",
        *(f"gride_{2**power}" for power in range(7)),
    }


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"two_n": {}}, "parameters`: unknown estimator `two_n`; did you mean `two_nn"),
        ({"two_nn": {"keep": 0.5}}, "unknown parameter `keep`; did you mean `kept`?"),
        ({"two_nn": {"kept": 0}}, "two_nn.kept` is 0.0, but must be a number above 0 and"),
        ({"two_nn": {"kept": True}}, "is True, but must be a number"),
        ({"mada": {"k": 2.5}}, "is 2.5, but must be a whole number at least 2"),
        ({"mada": {"k": 129}}, "measure `mada` needs 129 neighbours"),
        ({"mle": {"combine": "max"}}, "must be one of `mean`, `median`, `harmonic`"),
        ({"anisotropy": {"center": False}}, "parameters.anisotropy`: unknown parameter `center`"),
    ],
)
def test_an_impossible_parameter_is_refused_in_one_sentence(parameters, sentence):
    assert sentence in refuse_choice("anisotropy", "two_nn", "mada", "mle", **parameters)


def test_gride_has_the_scale_of_its_name():
    r = np.arange(1.0, 129.0) ** (1 / np.arange(2.0, 12.0))[:, None]
    for n1 in (1, 2, 4, 8, 16, 32, 64):
        assert choose_registered(f"gride_{n1}")[f"gride_{n1}"].load()(r) == gride(r, n1)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with an entry point on the path."""

    def store_package(name, value):
        folder = tmp_path / "shapes-1.0.dist-info"
        folder.mkdir()
        (tmp_path / "shapes.py").write_text("SPAN = 1")
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: shapes\nVersion: 1.0\n")
        entry = f"[shape_of_learning.measures]\n{name} = {value}\n"
        (folder / "entry_points.txt").write_text(entry)
        find_registered_measures.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield store_package
    find_registered_measures.cache_clear()
    sys.modules.pop("shapes", None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nowhere:SPAN", "cannot be loaded (ModuleNotFoundError: No module named 'nowhere')"),
        ("shapes:SPAN", "cannot be loaded (TypeError: it is a int, not a Measure)"),
    ],
)
def test_a_broken_entry_names_its_package(install, value, reason):
    install("span", value)
    message = refuse_choice("span")
    assert f"measure `span`: {value} {reason}" in message
    assert choose_registered("two_nn"), "other measures still load"


def test_a_name_that_is_taken_is_refused(install):
    install("two_nn", "shapes:X")
    message = "package `shapes` registers the measure `two_nn`, but this name is taken"
    assert message in refuse_choice("mada")
