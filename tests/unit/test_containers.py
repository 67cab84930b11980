"""GGUF files of Gemma 3 and Qwen 2.5 become folders with the same weights, shape and tokens."""

import io
import json
import random

import gguf
import numpy as np
import pytest
import torch
from tests.unit.tokenizers_for_tests import family_tokenizer
from tokenizers import Regex, Tokenizer, pre_tokenizers

from crossalign.engine.folders import load_encoder
from crossalign.fetch.containers import read_container, write_container
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_json

spm = pytest.importorskip("sentencepiece")

SHAPE = {"block_count": 6, "embedding_length": 32, "feed_forward_length": 64, "attention.head_count": 2,
         "attention.head_count_kv": 1, "context_length": 64}  # fmt: skip
MATRICES = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32), "ffn_gate": (64, 32),
            "ffn_up": (64, 32), "ffn_down": (32, 64)}  # fmt: skip
# By family: numbers of its own; norms and their sizes; biases; what the library adds to a norm's weight.
FAMILIES = {
    "gemma3": (
        {"attention.key_length": 16, "attention.sliding_window": 8},
        dict.fromkeys(("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), 32)
        | {"attn_q_norm": 16, "attn_k_norm": 16},
        (),
        1.0,
    ),
    "qwen2": ({}, {"attn_norm": 32, "ffn_norm": 32}, ("attn_q", "attn_k", "attn_v"), 0.0),
}
USERS = ("\n", "▁▁", "▁▁▁")


# How the published tokenizers of Qwen cut a text into words.
CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def qwen():
    tokenizer = family_tokenizer("qwen3")
    spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CUT), "isolated"), spelling])
    return tokenizer


@pytest.fixture(scope="module")
def pieces(root):
    """Sentencepiece's BPE on a page of this project, made as Gemma's: bytes for what it lacks, spaces as they are."""
    text = (root / "README.md").read_text(encoding="utf-8").splitlines() * 2
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=model, model_type="bpe", vocab_size=700, byte_fallback=True,
        normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False, pad_id=0, eos_id=1,
        bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
        user_defined_symbols=list(USERS), minloglevel=2,
    )  # fmt: skip
    return spm.SentencePieceProcessor(model_proto=model.getvalue())


def add_gemma_tokens(writer, pieces):
    names = [pieces.id_to_piece(number) for number in range(len(pieces))]
    kinds = [
        3 if number < 4 else 6 if pieces.is_byte(number) else 4 if name in USERS else 1
        for number, name in enumerate(names)
    ]
    writer.add_tokenizer_model("llama")
    # As llama.cpp writes them: runs of spaces are spaces.
    names = [name.replace("▁", " ") if kind == 4 else name for name, kind in zip(names, kinds, strict=True)]
    writer.add_token_list(names)
    writer.add_token_scores([pieces.get_score(number) for number in range(len(pieces))])
    writer.add_token_types(kinds)
    for name, number in (("padding", 0), ("eos", 1), ("bos", 2), ("unknown", 3)):
        writer.add_uint32(f"tokenizer.ggml.{name}_token_id", number)


def add_qwen_tokens(writer, tokenizer):
    vocabulary = tokenizer.get_vocab()
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(vocabulary, key=vocabulary.get))
    writer.add_token_types([1] * len(vocabulary))
    writer.add_token_merges([" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]])
    writer.add_uint32("tokenizer.ggml.eos_token_id", 0)
    writer.add_uint32("tokenizer.ggml.padding_token_id", 0)


@pytest.fixture(scope="module", params=FAMILIES)
def made(request, pieces, tmp_path_factory):
    """The family, a GGUF file of a small model, its matrices in Q8_0, and the folder made from it."""
    family = request.param
    own, norms, biases, _ = FAMILIES[family]
    place = tmp_path_factory.mktemp(family)
    writer = gguf.GGUFWriter(place / "small.gguf", family)
    for key, value in (SHAPE | own).items():
        writer.add_uint32(f"{family}.{key}", value)
    writer.add_float32(f"{family}.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_float32(f"{family}.rope.freq_base", 1e6)
    if family == "gemma3":
        add_gemma_tokens(writer, pieces)
    else:
        add_qwen_tokens(writer, qwen())
    dice = np.random.default_rng(1)

    def matrix(name, rows, columns):
        values = dice.normal(0, 0.05, (rows, columns)).astype(np.float32)
        quantised = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(name, quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    matrix("token_embd.weight", len(pieces) if family == "gemma3" else qwen().get_vocab_size(), 32)
    writer.add_tensor("output_norm.weight", np.full(32, 1.5, np.float32))
    for layer in range(SHAPE["block_count"]):
        for name, size in norms.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.full(size, 1 + layer / 8, np.float32))
        for name, shape in MATRICES.items():
            matrix(f"blk.{layer}.{name}.weight", *shape)
        for name in biases:
            writer.add_tensor(f"blk.{layer}.{name}.bias", np.full(MATRICES[name][0], layer / 4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (place / "model").mkdir()
    container = read_container(place / "small.gguf")
    with (place / "model/model.safetensors").open("wb") as stream:
        write_container(container, stream)
    write_json(place / "model/config.json", container.config)
    (place / "model/tokenizer.json").write_text(container.tokenizer, encoding="utf-8")
    return family, place / "small.gguf", place / "model"


def test_weights_and_shape_are_those_of_the_file(made):
    family, file, folder = made
    encoder, _ = load_encoder(folder)
    config, layer = encoder.model.config, encoder.layers[4]
    assert (config.num_hidden_layers, config.rms_norm_eps, config.max_position_embeddings) == (6, 1e-6, 64)
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
    names = {"attn_q": layer.self_attn.q_proj, "attn_k": layer.self_attn.k_proj, "attn_v": layer.self_attn.v_proj}
    names |= {"attn_output": layer.self_attn.o_proj, "ffn_gate": layer.mlp.gate_proj, "ffn_up": layer.mlp.up_proj}
    for name, part in (names | {"ffn_down": layer.mlp.down_proj}).items():
        tensor = stored[f"blk.4.{name}.weight"]
        values = torch.tensor(gguf.quants.dequantize(tensor.data, tensor.tensor_type))
        assert torch.equal(part.weight, values.bfloat16().float()), name
        assert part.bias is None or torch.all(part.bias == 1.0)
    added = FAMILIES[family][-1]
    assert torch.all(layer.input_layernorm.weight == 1.5 - added)
    if family == "gemma3":
        assert [each.split("_")[0] for each in config.layer_types] == ["sliding"] * 5 + ["full"]
        thetas = {kind: each["rope_theta"] for kind, each in config.rope_parameters.items()}
        assert thetas == {"full_attention": 1e6, "sliding_attention": 1e4}
        assert (config.head_dim, config.query_pre_attn_scalar, config.sliding_window) == (16, 16, 8)
        assert (config.bos_token_id, config.eos_token_id, config.pad_token_id) == (2, 1, 0)
    else:
        assert config.rope_parameters["rope_theta"] == 1e6


def test_tokens_are_those_of_the_original(made, pieces, root):
    family, _, folder = made
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    dice = random.Random(1)
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = [*text.splitlines(), "a  b   c    d\n\n", "Привет, мир ☃", ""]
    lines += ["".join(dice.choices(text, k=30)) for _ in range(300)]
    if family == "gemma3":
        original, first = pieces.encode, [2]
    else:
        theirs = qwen()
        original, first = (lambda line: theirs.encode(line).ids), []
    for line in lines:
        assert tokenizer.encode(line, add_special_tokens=False).ids == original(line), line
    assert tokenizer.encode("a").ids == [*first, *original("a")]


def test_other_files_are_refused(made, tmp_path):
    whole = made[1].read_bytes()
    (tmp_path / "half.gguf").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "other.gguf").write_bytes(whole.replace(made[0].encode(), b"nosuch"[: len(made[0])]))
    for name in ("half.gguf", "other.gguf"):
        with pytest.raises(UserError, match=f"{name} is no whole GGUF file of a known model"):
            read_container(tmp_path / name)
