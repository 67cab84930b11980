"""Where large models lie, planned from their configuration alone."""

import csv
import os
import subprocess
import sys

import pytest
import torch

from crossalign.embedding.placement import Demand, Sizes, demand, plan, weight_sizes, working_bytes
from crossalign.engine.encoder import empty_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.task_model import BUDGET
from crossalign.fetch.register import read_models
from crossalign.runtime.errors import UserError

GPU0, GPU1 = torch.device("cuda", 0), torch.device("cuda", 1)
GB = 10**9
# The published configurations, as far as they decide the size.
XLMR_XL = {"vocab_size": 250880, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1}
CONFIGS = {
    "xlmr-xl": {**XLMR_XL, "model_type": "xlm-roberta-xl", "hidden_size": 2560, "num_hidden_layers": 36,
                "num_attention_heads": 32, "intermediate_size": 10240},
    "xlmr-xxl": {**XLMR_XL, "model_type": "xlm-roberta-xl", "hidden_size": 4096, "num_hidden_layers": 48,
                 "num_attention_heads": 32, "intermediate_size": 16384},
    "xglm-564m": {"model_type": "xglm", "vocab_size": 256008, "d_model": 1024, "num_layers": 24,
                  "attention_heads": 16, "ffn_dim": 4096},
    "xglm-7.5b": {"model_type": "xglm", "vocab_size": 256008, "d_model": 4096, "num_layers": 32,
                  "attention_heads": 32, "ffn_dim": 16384},
}  # fmt: skip


def empty(raw):
    return empty_encoder(EncoderConfig.from_huggingface(raw))


@pytest.mark.parametrize("name", CONFIGS)
def test_sizes_are_those_of_the_register(name, root):
    with (root / "resources" / "models.tsv").open(encoding="utf-8") as stream:
        parameters = {row["name"]: row["parameters"] for row in csv.DictReader(stream, delimiter="\t")}
    assert weight_sizes(empty(CONFIGS[name]), "bf16").total == 2 * int(parameters[name])
    assert weight_sizes(empty(CONFIGS[name]), "fp32").total == 4 * int(parameters[name])


def test_tables_of_small_models_stay_exact():
    encoder = empty_encoder(EncoderConfig(vocab_size=100, hidden=8, layers=2, heads=2, intermediate=16))
    low, full = weight_sizes(encoder, "bf16"), weight_sizes(encoder, "fp32")
    assert low.embeddings == full.embeddings and 2 * sum(low.layers) == sum(full.layers)


SIX = Sizes(4 * GB, (GB,) * 6, 10)


@pytest.mark.parametrize(
    ("devices", "host", "layers", "spilled"),
    [
        ([(GPU0, 14 * GB), (GPU1, 14 * GB)], 0, [GPU0] * 6, set()),
        # 9.5 GB without slack, 2 for batches, 4 for the embeddings: three layers fit.
        ([(GPU0, 10 * GB), (GPU1, 10 * GB)], 0, [GPU0] * 3 + [GPU1] * 3, set()),
        # Host memory takes what the device cannot hold; one layer's room is kept for the copies.
        ([(GPU0, 10 * GB)], 20 * GB, [GPU0] * 6, {2, 3, 4, 5}),
    ],
)
def test_where_layers_lie(devices, host, layers, spilled):
    placement = plan("m", SIX, 2 * GB, devices, host)
    assert list(placement.layers) == layers and placement.spilled == spilled
    assert placement.weights_at("embeddings.word.weight") == GPU0
    assert placement.weights_at("final_norm.weight") == layers[-1]
    for number, device in enumerate(layers):
        want = torch.device("cpu") if number in spilled else device
        assert placement.weights_at(f"layers.{number}.up.weight") == want


@pytest.mark.parametrize(
    ("devices", "host"),
    [([(GPU0, 10 * GB)], 4 * GB), ([(GPU0, 5 * GB)], 100 * GB), ([(torch.device("cpu"), 10 * GB)], 10 * GB)],
)
def test_what_does_not_fit_gives_numbers_and_ways_out(devices, host):
    with pytest.raises(UserError) as caught:
        plan("models/huge", Sizes(4 * GB, (GB,) * 6, 0), 2 * GB, devices, host)
    message = str(caught.value)
    assert message.startswith("models/huge does not fit: its weights need 10.0 GB (10000000000 bytes)")
    assert "a batch 2.0 GB (2000000000 bytes)" in message
    assert f"host memory {host / GB:.1f} GB ({host} bytes)" in message
    assert ("cuda:0" in message) == (devices[0][0].type == "cuda")
    assert "--precision bf16" in message and "--token-budget" in message and "more GPUs" in message


def test_a_batch_needs_more_with_more_tokens_and_precision():
    encoder = empty(CONFIGS["xlmr-xxl"])
    assert working_bytes(encoder, "bf16", 2000) == 2 * working_bytes(encoder, "bf16", 1000)
    assert working_bytes(encoder, "bf16", 1000) < working_bytes(encoder, "fp32", 1000)
    # Nothing of a layer is smaller than its input, its two products and the inner states.
    assert working_bytes(encoder, "bf16", 1) > 2 * (4096 + 3 * 4096 + 16384)


@pytest.mark.parametrize("name", ["mbert", "xlmr-base", *CONFIGS])
def test_demand_before_the_download(name, root):
    """From the register alone: the weights as they will be, a batch rather too large than too small."""
    found = demand(read_models(root / "resources" / "models.tsv")[name])
    base = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    small = {
        "mbert": {"model_type": "bert", "vocab_size": 119547, "max_position_embeddings": 512},
        "xlmr-base": {"model_type": "xlm-roberta", "vocab_size": 250002, "max_position_embeddings": 514,
                      "type_vocab_size": 1},
    }  # fmt: skip
    encoder = empty(CONFIGS.get(name) or {**base, **small[name]})
    assert found.weights == pytest.approx(weight_sizes(encoder, "bf16").total, rel=0.001)
    budget = BUDGET["cuda"]
    assert working_bytes(encoder, "bf16", budget) <= found.batch < 3 * working_bytes(encoder, "bf16", budget)
    assert plan("m", weight_sizes(encoder, "bf16"), found.batch, [(GPU0, found.memory + GB // 100)], 0).layers


@pytest.mark.parametrize(("memory", "devices"), [(40, 1), (10, 3), (3, 0)])
def test_demand_in_devices(memory, devices):
    """Of 10 GB 9.5 are used, 2 of them for a batch: seven layers on each."""
    assert Demand(weights=20 * GB, batch=2 * GB, layer=GB).devices(memory * GB) == devices


def test_a_model_of_unknown_size_has_no_demand(root):
    assert demand(read_models(root / "resources" / "models.tsv")["scale-pre"]) is None


def test_demand_needs_no_torch(root):
    code = "import sys; import crossalign.embedding.placement; print('torch' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(root / "scripts")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "False", done.stderr
