"""The benchmarks: their counts are right, and on a CPU they run in their smallest form."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def benchmarks(root, monkeypatch):
    """The folder of the benchmarks, to import from; it has names that the folder of the programs has too."""
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    monkeypatch.delitem(sys.modules, "pretrain", raising=False)
    yield root / "benchmarks"
    for name in ("pretrain", "common", "peers"):
        sys.modules.pop(name, None)


def run(root, program, *arguments):
    command = [sys.executable, str(root / "benchmarks" / program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_operations_are_those_of_the_products_and_of_attention(benchmarks):
    import pretrain

    layer = torch.nn.TransformerEncoderLayer(8, 2, 32, bias=False)
    weights = sum(weight.numel() for weight in layer.parameters() if weight.dim() == 2)
    shape = {"layers": 3, "hidden": 8, "intermediate": 32}
    assert pretrain.encoder_flops(shape, 0) == 6 * 3 * weights
    # Forward: scores and weighted means, a product of 2 x length x neurons each; backward twice as much.
    assert pretrain.encoder_flops(shape, 5) - pretrain.encoder_flops(shape, 0) == 3 * 3 * (2 * 2 * 5 * 8)
    assert pretrain.head_flops(shape, 100) == 6 * (8 * 8 + 8 * 100)


@pytest.mark.slow
def test_pretraining_and_its_peer_run_on_a_cpu(root, tmp_path):
    done = run(root, "pretrain.py", "--quick", "--device", "cpu", "--lengths", 128, "--out", tmp_path / "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["128"]
    assert found["ratio"] == pytest.approx(
        found["ours"]["tokens_per_second"] / found["library"]["tokens_per_second"], abs=0.01
    )


@pytest.mark.slow
def test_fine_tunings_that_share_make_what_those_after_each_other_make(root, tmp_path):
    file = tmp_path / "rows.json"
    done = run(
        root, "share_gpu.py", "--model-size", "tiny", "--device", "cpu", "--runs", 2, "--at-once", 2, "--out", file
    )
    assert done.returncode == 0, done.stderr
    alone, shared = json.loads(file.read_text(encoding="utf-8"))
    assert [(row["at_once"], row["runs"]) for row in (alone, shared)] == [(1, 2), (2, 2)]
    assert alone["same_weights"] and shared["same_weights"]
    assert done.stdout.count("| yes |") == 2
    assert alone["steps_of_one"] == shared["steps_of_one"] > 1
    each = [row["seconds"] / row["runs"] for row in (alone, shared)]
    assert shared["ratio"] == round(each[0] / each[1], 2)
