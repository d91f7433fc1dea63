"""GGUF files are measured as they state, or refused in a sentence."""

import json
import os
import re
from contextlib import nullcontext
from itertools import pairwise

import gguf
import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import shape_of_learning.checkpoints.gguf_files as module
from gguf_files import add_metadata, save_llama, save_with_tokenizer, write_gguf
from shape_of_learning.checkpoints.gguf_tokenizers import load_gguf_tokenizer
from shape_of_learning.checkpoints.local import find_local_checkpoint
from shape_of_learning.embeddings.model import load_model
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from tiny_models import TEXT


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache of the user."""
    folder = tmp_path / "cache"

    def assets(library: str, namespace: str):
        (folder / namespace).mkdir(parents=True, exist_ok=True)
        return folder / namespace

    monkeypatch.setattr("huggingface_hub.cached_assets_path", assets)
    return folder


def catch_refusal(file, cache) -> str:
    with pytest.raises(InputError) as error:
        find_local_checkpoint(str(file))
    assert list(cache.glob(f"{module.UNPACKED}/*")) == []  # nothing is kept, not even hidden
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_whole_file_gives_the_model_from_which_it_was_made(llama, tmp_path):
    folder = find_local_checkpoint(str(write_gguf(tmp_path / "a.gguf", llama)))
    model, head = load_model(
        folder, role="decoder", precision="float32", device=torch.device("cpu")
    )
    assert head is not None
    original_weights = hf.LlamaModel.from_pretrained(llama).state_dict()
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, original_weights[name]), name
    assert load_tokenizer(folder)("abc")["input_ids"] == load_tokenizer(llama)("abc")["input_ids"]


def test_a_file_without_a_tensor_is_refused_with_its_name(llama, tmp_path, cache):
    names: list[str] = []
    write_gguf(tmp_path / "a.gguf", llama, lambda tensors: names.extend(tensors) or tensors)
    assert len(names) == 30
    for name in names:
        file = tmp_path / "lacking.gguf"
        write_gguf(file, llama, lambda t, name=name: {n: v for n, v in t.items() if n != name})
        if name != "output.weight":  # without which the embeddings are it
            assert "which would be random numbers" in catch_refusal(file, cache)


@pytest.mark.parametrize(
    ("metadata", "pattern"),
    [
        ({"block_count": 5}, r"states 5 blocks \(`llama.block_count`\), but has tensors of 3"),
        ({"block_count": 2}, "states 2 blocks"),
        ({"block_count": 1_000_000}, "states 1000000 blocks"),
        ({"block_count": None}, "does not state `llama.block_count`"),
        ({"embedding_length": None}, "does not state `llama.embedding_length`"),
        ({"attention.head_count": None}, "does not state `llama.attention.head_count`"),
        ({"attention.head_count_kv": None}, "does not state `llama.attention.head_count_kv`"),
        ({"attention.layer_norm_rms_epsilon": None}, "does not state .*layer_norm_epsilon"),
        ({"embedding_length": 64}, "has the shape|describes a model of"),
        ({"feed_forward_length": 48}, "has the shape"),
        ({"feed_forward_length": 1_000_000_000}, "describes a model of"),
        ({"attention.head_count_kv": 1}, "has the shape"),
    ],
)
def test_metadata_that_do_not_fit_the_tensors_are_refused(
    metadata, pattern, llama, tmp_path, cache
):
    file = write_gguf(tmp_path / "a.gguf", llama, **metadata)
    assert re.search(pattern, catch_refusal(file, cache))


LINEAR, YARN = (
    {"rope.scaling.type": kind, "rope.scaling.factor": 4.0} for kind in ("linear", "yarn")
)


@pytest.mark.parametrize(
    "metadata",
    [
        LINEAR,
        YARN,
        {"rope.scale_linear": 4.0},
        {"rope.scaling.type": "longrope"},
        {"attention.key_length": 16},
        {"attention.causal": False},
        {"attention.clamp_kqv": 8.0},
        {"attention.scale": 0.5},
        {"attn_logit_softcapping": 50.0},
        {"embedding_scale": 12.0},
        {"residual_scale": 0.22},
    ],
)
def test_metadata_that_transformers_ignores_are_refused_if_they_change_states(
    metadata, llama, tmp_path, cache
):
    sentence = catch_refusal(write_gguf(tmp_path / "a.gguf", llama, **metadata), cache)
    assert re.search(rf"states .* for `llama\.({'|'.join(map(re.escape, metadata))})`", sentence)


def test_metadata_that_agree_with_the_model_are_accepted(llama, tmp_path):
    """Of eight coordinates in each of four heads."""
    file = tmp_path / "a.gguf"
    sizes = {"attention.key_length": 8, "attention.value_length": 8, "rope.dimension_count": 8}
    no_scaling = {"rope.scaling.type": "none", "rope.scaling.original_context_length": 128}
    factor_one = {"rope.scaling.type": "linear", "rope.scaling.factor": 1.0}
    for scaling in (no_scaling, factor_one):
        write_gguf(file, llama, **sizes, **scaling, **{"attention.scale": 8**-0.5})
        assert find_local_checkpoint(str(file)).is_dir()


@pytest.mark.parametrize(
    ("config", "metadata", "fault"),
    [
        (hf.Starcoder2Config(), {"rope.freq_base": 999999.4375}, "rope.freq_base"),
        (hf.Phi3Config(pad_token_id=0), {"rope.dimension_count": 72}, "rope.dimension_count"),
        (
            hf.Gemma2Config(hidden_size=4608, num_attention_heads=32, head_dim=128),
            {"attention.key_length": 128},
            "attention.key_length",
        ),
        (hf.Gemma2Config(), {"attention.key_length": 256, "attn_logit_softcapping": 50.0}, ""),
        (hf.Gemma3TextConfig(), LINEAR, "rope.scaling.factor"),
        (hf.Gemma3TextConfig(), {"rope.freq_base": 1e6, "rope.dimension_count": 256}, ""),
        (hf.MambaConfig(), {"ssm.dt_b_c_rms": True}, "ssm.dt_b_c_rms"),
    ],
)
def test_a_default_of_transformers_does_not_replace_metadata_of_a_file(
    config, metadata, fault, tmp_path
):
    """The library does not read where Starcoder2 has its base, and of Gemma 2 takes a scale that 27B has not."""
    file = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(file, config.model_type)
    add_metadata(writer, config.model_type, metadata)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    refused_key = pytest.raises(InputError, match=re.escape(f"`{config.model_type}.{fault}`"))
    with refused_key if fault else nullcontext():
        module._refuse_unread_metadata(file, gguf.GGUFReader(file), config)


@pytest.mark.parametrize("name", ["blk.0.attn_q.bias", "blk.1.extra.weight", "extra.weight"])
def test_tensors_that_no_model_takes_are_refused(name, llama, tmp_path, cache):
    surplus = {name: np.ones(32, np.float32)}
    file = write_gguf(tmp_path / "a.gguf", llama, lambda tensors: {**tensors, **surplus})
    assert f"holds `{name}`, which transformers leaves out" in catch_refusal(file, cache)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("gpt-2", ["see", ".", "word", "__", "_2023"]),
        ("llama-bpe", ["see", ".word", "__", "_", "202", "3"]),
        ("dbrx", ["see", ".word", "__", "_", "202", "3"]),
        ("gpt-4o", ["see", ".word", "__", "_", "202", "3"]),
        ("tekken", ["see", ".word", "__", "_", "2", "0", "2", "3"]),
        ("qwen2", ["see", ".word", "__", "_", "2", "0", "2", "3"]),
        ("qwen35", ["see", ".word", "__", "_", "2", "0", "2", "3"]),
        ("smollm", ["see", ".", "word", "___", "2", "0", "2", "3"]),
        ("starcoder", ["see", ".", "word", "___", "2", "0", "2", "3"]),
    ],
)
def test_text_is_split_into_words_by_the_rule_of_the_file(rule, words, llama, tmp_path, caplog):
    folder = find_local_checkpoint(str(write_gguf(tmp_path / "a.gguf", llama, words=rule)))
    rules = load_tokenizer(folder).backend_tokenizer.pre_tokenizer
    pieces = [word for word, _ in rules.pre_tokenize_str("see.word   2023")]
    assert pieces == [word.replace("_", "Ġ") for word in words]
    assert not caplog.messages


# The patterns in `tokenizer.json` of Llama 3, Mistral Nemo, Qwen 2, Qwen 3.5 and Phi 4 mini, by their alternatives.
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SIGNS, SIGNS_AND_SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = [rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}{few}{LOWER}{many}" for few, many in ("*+", "+*")]
PUBLISHED = {
    "llama-bpe": [ENDINGS, WORD, r"\p{N}{1,3}", SIGNS, BLANKS],
    "tekken": [*CASED, r"\p{N}", SIGNS_AND_SLASHES, BLANKS],
    "qwen2": [ENDINGS, WORD, r"\p{N}", SIGNS, BLANKS],
    "qwen35": [
        ENDINGS,
        r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
        r"\p{N}",
        r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
        BLANKS,
    ],
    "gpt-4o": [*(f"{word}{ENDINGS}?" for word in CASED), r"\p{N}{1,3}", SIGNS_AND_SLASHES, BLANKS],
}
CUT = [
    "in 1234567 of 12, or 3.14",
    "I'll say we've DON'T and 'Tis",
    " a  b   c \n\n d\r\n\te  ",
    "HTTPServer camelCase and/or //\n",
    "日本語 テスト、漢字123",
    "🙂👍🏽 cafe\u0301 café नमस्ते",
]


@pytest.mark.parametrize("rule", PUBLISHED)
def test_token_ids_are_those_of_the_published_rule(rule, llama, tmp_path):
    """Of a vocabulary whose merges lead across the borders of words, so that each border is seen in the ids.

    "unreached" is a token that no merge makes: it is found as a word by Llama 3 and Mistral Nemo alone.
    """
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = letters
    bpe.train_from_iterator(
        CUT,
        trainers.BpeTrainer(
            vocab_size=1000,
            show_progress=False,
            special_tokens=["<s>"],
            initial_alphabet=letters.alphabet(),
        ),
    )
    settings = json.loads(bpe.to_str())["model"]
    vocabulary = {**settings["vocab"], "Ġunreached": len(settings["vocab"])}
    merges = [tuple(pair) for pair in settings["merges"]]
    is_whole = rule in ("llama-bpe", "tekken")
    original = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=is_whole))
    original.add_special_tokens(["<s>"])
    split = pre_tokenizers.Split(Regex("|".join(PUBLISHED[rule])), behavior="isolated")
    original.pre_tokenizer = pre_tokenizers.Sequence([split, letters])
    if rule.startswith("qwen"):
        original.normalizer = normalizers.NFC()
    folder = save_with_tokenizer(llama, original, tmp_path / "folder")
    file = write_gguf(tmp_path / "a.gguf", folder, words=rule)
    tokenizer = load_tokenizer(find_local_checkpoint(str(file)))
    for text in (*CUT, "an unreached word", "unreached"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids == original.encode(text).ids, text
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("an unreached word")["input_ids"])
    assert ("Ġunreached" in tokens) == is_whole


@pytest.mark.parametrize(
    ("rule", "flag", "first"),
    [
        ("llama-bpe", None, [0]),
        ("tekken", None, [0]),
        ("llama-bpe", False, []),
        ("qwen2", None, []),
        ("gpt-2", None, []),
        ("gpt-2", True, [0]),
    ],
)
def test_a_text_begins_with_bos_if_the_file_or_its_rule_for_words_requires_it(
    rule, flag, first, llama, tmp_path
):
    """As in llama.cpp, where Llama 3 and Mistral's Tekken have it without a flag."""
    file = write_gguf(tmp_path / "a.gguf", llama, words=rule, tokenizer={"add_bos_token": flag})
    tokenizer = load_tokenizer(find_local_checkpoint(str(file)))
    inner = tokenizer("abc", add_special_tokens=False)["input_ids"]
    assert tokenizer("abc")["input_ids"] == first + inner


BEGIN = "<\uff5cbegin▁of▁sentence\uff5c>"


@pytest.mark.parametrize("special", [True, False])
def test_added_tokens_outside_the_letters_of_gpt_2_keep_their_ids(special, llama, tmp_path):
    """Runs of blanks in GPT-NeoX and StableLM, lines in others, and DeepSeek's name of BOS."""
    original = Tokenizer.from_file(str(llama / "tokenizer.json"))
    names = ["  ", "   ", "\n\n", "日本", BEGIN]
    original.add_tokens([AddedToken(t, normalized=False, special=special) for t in names])
    begin = original.token_to_id(BEGIN)
    original.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, begin)]
    )
    folder = save_with_tokenizer(llama, original, tmp_path / "folder")
    metadata = {"add_bos_token": True, "bos_token_id": begin}
    file = write_gguf(tmp_path / "a.gguf", folder, tokenizer=metadata)
    tokenizer = load_tokenizer(find_local_checkpoint(str(file)))
    assert len(tokenizer) == original.get_vocab_size()
    for text in ("a  b   c", "a\n\nb\n日本", f"a{BEGIN}b", "ĠĠ<|endoftext|>"):
        assert tokenizer(text)["input_ids"] == original.encode(text).ids


def test_sentencepiece_files_add_a_first_blank_unless_they_deny_it(llama, tmp_path):
    letters = {token: place for place, token in enumerate(["<unk>", "<s>", "</s>", *"▁abc"])}
    pairs = [("▁", "a"), ("b", "c")]
    vocabulary = letters | {"".join(pair): len(letters) + n for n, pair in enumerate(pairs)}
    for has_blank in (True, False):
        original = Tokenizer(models.BPE(vocabulary, pairs, unk_token="<unk>"))
        original.add_special_tokens(["<unk>", "<s>", "</s>"])
        blanks = normalizers.Replace(" ", "▁")
        first = normalizers.Prepend("▁")
        original.normalizer = normalizers.Sequence([first, blanks] if has_blank else [blanks])
        original.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )
        folder = save_with_tokenizer(llama, original, tmp_path / f"{has_blank}")
        metadata = {"add_space_prefix": has_blank, "bos_token_id": 1, "unknown_token_id": 0}
        file = write_gguf(
            tmp_path / f"{has_blank}.gguf",
            folder,
            words="default",
            kind="llama",
            tokenizer=metadata,
        )
        tokenizer = load_tokenizer(find_local_checkpoint(str(file)))
        for text in ("abc", "a bc  a", "bca", " a", "  abc ", " ", ""):
            assert tokenizer(text)["input_ids"] == original.encode(text).ids


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
JOINED = ["▁a", "bc", "▁▁", "th", "▁th", "the", "▁the", "▁abc", "▁▁▁", "▁▁▁▁"]
LETTERS = [*"▁abcdthe"]


def tokenise_as_sentencepiece(text: str, tokens: list[str], scores: list[float]) -> list[int]:
    """Join the two neighbours that make the token of the best score, the first of several, for as long as it goes."""
    score = dict(zip(tokens, scores, strict=True))
    pieces = list(text.replace(" ", "▁"))
    while pairs := [
        (score[a + b], -i) for i, (a, b) in enumerate(pairwise(pieces)) if a + b in score
    ]:
        place = -max(pairs)[1]
        pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
    names: list[str] = []
    for piece in pieces:
        if piece in score:
            names.append(piece)
        elif BYTES[0] in score:
            names.extend(BYTES[byte] for byte in piece.encode())
        elif names[-1:] != ["<unk>"]:
            names.append("<unk>")
    return [tokens.index(piece) for piece in names]


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
@pytest.mark.parametrize("extra", [BYTES, []], ids=["bytes", "no bytes"])
def test_text_is_tokenised_as_by_sentencepiece(architecture, extra, tmp_path):
    """Gemma's files spell runs of blanks as they are, and only the order of their tokens is that of merges."""
    tokens = ["<unk>", "<s>", "</s>", *extra, *JOINED, *LETTERS]
    scores = [-float(place) for place in range(len(tokens))]
    control, normal, user_defined = (
        gguf.TokenType.CONTROL, gguf.TokenType.NORMAL, gguf.TokenType.USER_DEFINED,
    )  # fmt: skip
    types = [control] * 3 + [normal] * (len(tokens) - 3)
    first, file_tokens, file_scores = "▁", tokens, scores
    if architecture == "gemma2":
        first, file_scores = "", [0.0, *scores[:0:-1]]
        file_tokens = [token if token.strip("▁") else " " * len(token) for token in tokens]
        types = [
            user_defined if " " in token else t for token, t in zip(file_tokens, types, strict=True)
        ]
    file = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(file_tokens)
    writer.add_token_scores(file_scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tokenizer, _ = load_gguf_tokenizer(file, gguf.GGUFReader(file))
    for text in (
        " a",
        "  abc",
        "abc   ",
        " ",
        "the the",
        "a\n the\n\n",
        "b ☃☃ é",
        "     dabc",
        "日本",
    ):
        ids = tokenise_as_sentencepiece(first + text, tokens, scores)
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids, text
    assert tokenizer("")["input_ids"] == []


def test_an_ordinary_token_named_for_padding_stays_an_ordinary_token(llama, tmp_path):
    """Fine-tunings name "!" or the like for padding."""
    plain = load_tokenizer(find_local_checkpoint(str(write_gguf(tmp_path / "a.gguf", llama))))
    ids = plain(TEXT[0])["input_ids"]
    longest = max(ids, key=lambda number: len(plain.convert_ids_to_tokens(number)))
    metadata = {"padding_token_id": longest, "unknown_token_id": longest}
    file = write_gguf(tmp_path / "b.gguf", llama, tokenizer=metadata)
    tokenizer = load_tokenizer(find_local_checkpoint(str(file)))
    assert tokenizer(TEXT[0])["input_ids"] == ids
    assert longest not in tokenizer.all_special_ids


def test_a_file_without_a_rule_for_words_is_measured_with_a_warning_each_time(
    llama, tmp_path, caplog
):
    for rule in ("", "default"):
        file = write_gguf(tmp_path / f"rule_{rule}.gguf", llama, words=rule)
        for _ in range(2):
            find_local_checkpoint(str(file))
            assert "`tokenizer.ggml.pre`" in caplog.text
            caplog.clear()


@pytest.mark.parametrize("rule", ["deepseek-llm", "bloom", "not-yet-known"])
def test_an_unknown_rule_for_words_is_refused(rule, llama, tmp_path, cache):
    sentence = catch_refusal(write_gguf(tmp_path / "a.gguf", llama, words=rule), cache)
    assert f"the rule `{rule}`" in sentence


def test_a_changed_file_of_equal_time_is_unpacked_again(llama, tmp_path):
    file = write_gguf(tmp_path / "a.gguf", llama)
    first, content, status = find_local_checkpoint(str(file)), file.read_bytes(), file.stat()
    assert find_local_checkpoint(str(file)) == first
    for place in (len(content) // 2, len(content) - 5):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert find_local_checkpoint(str(file)) != first
    file.write_bytes(content)
    assert find_local_checkpoint(str(file)) == first


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_factors_of_positions_must_be_those_of_llama_3(factor, llama, tmp_path, cache):
    config = hf.LlamaConfig.from_pretrained(llama)
    theta = {"rope_theta": 500000.0, "factor": factor}
    config.rope_parameters = {**config.rope_parameters, **module.LLAMA_3_ROPE, **theta}
    frequencies = hf.LlamaModel(config).rotary_emb.inv_freq.numpy()
    width = config.hidden_size // config.num_attention_heads
    plain = 500000.0 ** (-np.arange(0, width, 2) / width)
    factors = (plain / frequencies).astype(np.float32)
    base = {"rope.freq_base": 500000.0}
    file = tmp_path / "a.gguf"
    write_gguf(file, llama, lambda t: {**t, module.ROPE_FACTORS: factors}, **base)
    folder = find_local_checkpoint(str(file))
    model, _ = load_model(folder, role="decoder", precision="float32", device=torch.device("cpu"))
    np.testing.assert_allclose(model.rotary_emb.inv_freq.numpy(), frequencies, rtol=1e-5)
    (cache / module.UNPACKED / folder.name).rename(tmp_path / "away")
    write_gguf(file, llama, lambda t: {**t, module.ROPE_FACTORS: factors + 1}, **base)
    assert "are no factors of Llama 3" in catch_refusal(file, cache)


def test_a_pointer_of_git_lfs_is_refused_with_the_command_that_fetches_the_file(tmp_path, cache):
    file = tmp_path / "a.gguf"
    file.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n")
    assert f"run `git lfs pull` in {tmp_path}" in catch_refusal(file, cache)


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_a_missing_package_is_named_with_its_command(package, llama, tmp_path, cache, monkeypatch):
    file = write_gguf(tmp_path / "a.gguf", llama)
    find_spec = module.find_spec
    monkeypatch.setattr(
        module, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    assert f"`pip install {package}`" in catch_refusal(file, cache)
