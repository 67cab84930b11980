"""tools/gguf_model.py: a GGUF file of Gemma 3 becomes a folder with the same weights, shape and tokens."""

import io
import json
import random
import subprocess
import sys

import numpy as np
import pytest

gguf = pytest.importorskip("gguf")
spm = pytest.importorskip("sentencepiece")
torch = pytest.importorskip("torch")

SHAPE = {"block_count": 6, "embedding_length": 32, "feed_forward_length": 64, "attention.head_count": 2,
         "attention.head_count_kv": 1, "attention.key_length": 16, "attention.sliding_window": 8,
         "context_length": 64}  # fmt: skip
NORMS = dict.fromkeys(("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), 32)
NORMS |= {"attn_q_norm": 16, "attn_k_norm": 16}
MATRICES = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32), "ffn_gate": (64, 32),
            "ffn_up": (64, 32), "ffn_down": (32, 64)}  # fmt: skip


@pytest.fixture(scope="module")
def pieces(root):
    """Sentencepiece's BPE on a page of this project, made as Gemma's: bytes for what it lacks, spaces as they are."""
    text = (root / "README.md").read_text(encoding="utf-8").splitlines() * 2
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=model, model_type="bpe", vocab_size=700, byte_fallback=True,
        normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False, pad_id=0, eos_id=1,
        bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
        user_defined_symbols=["\n", "▁▁", "▁▁▁"], minloglevel=2,
    )  # fmt: skip
    return spm.SentencePieceProcessor(model_proto=model.getvalue())


def kind(pieces, number):
    if number < 4:
        return 3
    return 6 if pieces.is_byte(number) else 4 if pieces.id_to_piece(number) in ("\n", "▁▁", "▁▁▁") else 1


@pytest.fixture(scope="module")
def file(pieces, tmp_path_factory):
    """A GGUF file of a small Gemma 3, its matrices in Q8_0."""
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer = gguf.GGUFWriter(path, "gemma3")
    for key, value in SHAPE.items():
        writer.add_uint32(f"gemma3.{key}", value)
    writer.add_float32("gemma3.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_float32("gemma3.rope.freq_base", 1e6)
    kinds = [kind(pieces, number) for number in range(len(pieces))]
    names = [pieces.id_to_piece(number) for number in range(len(pieces))]
    # As llama.cpp writes them: runs of spaces are spaces.
    names = [name.replace("▁", " ") if each == 4 else name for name, each in zip(names, kinds, strict=True)]
    writer.add_token_list(names)
    writer.add_token_scores([pieces.get_score(number) for number in range(len(pieces))])
    writer.add_token_types(kinds)
    for name, number in (("padding", 0), ("eos", 1), ("bos", 2), ("unknown", 3)):
        writer.add_uint32(f"tokenizer.ggml.{name}_token_id", number)
    dice = np.random.default_rng(1)

    def matrix(name, rows, columns):
        values = dice.normal(0, 0.05, (rows, columns)).astype(np.float32)
        quantised = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(name, quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    matrix("token_embd.weight", len(pieces), 32)
    writer.add_tensor("output_norm.weight", np.full(32, 1.5, np.float32))
    for layer in range(SHAPE["block_count"]):
        for name, size in NORMS.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.full(size, 1 + layer / 8, np.float32))
        for name, shape in MATRICES.items():
            matrix(f"blk.{layer}.{name}.weight", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def convert(root, *arguments):
    command = [sys.executable, str(root / "tools" / "gguf_model.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(root, file, tmp_path_factory):
    """Made from two pieces of the file."""
    place, whole = tmp_path_factory.mktemp("model"), file.read_bytes()
    parts = [place / "a", place / "b"]
    parts[0].write_bytes(whole[:5000])
    parts[1].write_bytes(whole[5000:])
    done = convert(root, *parts, "--out", place / "model")
    assert done.returncode == 0, done.stderr
    return place / "model"


def test_tokens_are_those_of_sentencepiece(pieces, folder, root):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    dice = random.Random(1)
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = [*text.splitlines(), "a  b   c    d\n\n", "Привет, мир ☃", ""]
    lines += ["".join(dice.choices(text, k=30)) for _ in range(300)]
    for line in lines:
        assert tokenizer.encode(line, add_special_tokens=False).ids == pieces.encode(line), line
    assert tokenizer.encode("a").ids == [2, *pieces.encode("a")]
    assert tokenizer.decode(tokenizer.encode(lines[-1]).ids) == lines[-1]


def test_the_library_loads_every_weight(folder, file):
    from transformers import AutoModelForCausalLM

    model, told = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not any(told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    layer = model.model.layers[4]
    assert torch.all(layer.input_layernorm.weight == 0.5) and torch.all(model.model.norm.weight == 0.5)
    assert [each.split("_")[0] for each in model.config.layer_types] == ["sliding"] * 5 + ["full"]
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}["blk.4.attn_k.weight"]
    values = torch.tensor(gguf.quants.dequantize(stored.data, stored.tensor_type))
    assert torch.equal(layer.self_attn.k_proj.weight, values.bfloat16().float())


def test_config_has_the_shape_of_the_file(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["Gemma3ForCausalLM"] and config["model_type"] == "gemma3_text"
    thetas = {kind: each["rope_theta"] for kind, each in config["rope_parameters"].items()}
    assert thetas == {"full_attention": 1e6, "sliding_attention": 1e4}
    assert (config["head_dim"], config["query_pre_attn_scalar"], config["sliding_window"]) == (16, 16, 8)
    assert (config["bos_token_id"], config["eos_token_id"], config["pad_token_id"]) == (2, 1, 0)


def test_other_files_are_refused(root, file, tmp_path):
    whole = file.read_bytes()
    (tmp_path / "half.gguf").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "other.gguf").write_bytes(whole.replace(b"gemma3", b"gemma9"))
    for name, told in (("nothing", "no such file"), ("half.gguf", "not a whole GGUF file"), ("other.gguf", "'gemma9'")):
        done = convert(root, tmp_path / name, "--out", tmp_path / "out")
        assert done.returncode == 1 and told in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
