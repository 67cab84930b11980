"""The benchmark of the small run: its counts are right, and on a CPU it runs in its smallest form, on made-up data."""

import json
import math
import subprocess
import sys

import pytest
from tokenizers_for_tests import bert_tokenizer

torch = pytest.importorskip("torch")


@pytest.fixture
def benchmarks(root, monkeypatch):
    """The folder of the benchmarks, to import from; it has names that the folder of the programs has too."""
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    monkeypatch.delitem(sys.modules, "pretrain", raising=False)
    yield root / "benchmarks"
    sys.modules.pop("pretrain", None)


@pytest.fixture(scope="module")
def prepared(root, tmp_path_factory):
    """Prepared sets of the run, very small."""
    folder = tmp_path_factory.mktemp("small")
    vocabulary = folder / "vocabularies" / "small" / "tokenizer.json"
    vocabulary.parent.mkdir(parents=True)
    bert_tokenizer().save(str(vocabulary))
    from crossalign.catalog.config import load
    from crossalign.catalog.trained_models import texts_of, trained_models

    for data in texts_of(trained_models(load([root / "config.small.yaml"]))["small"]):
        write(folder / data.path(), "John lives in Paris .\nWhere does the cat live ?\n" * 50)
    tree = "1\tJohn\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2\tlives\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
    for split in ("train", "dev"):
        write(folder / "data/trees/en_ewt" / f"{split}.conllu", f"# sent_id = 1\n{tree}\n" * 70)
    pair = {"id": "1", "premise": "the cat sat", "hypothesis": "the cat", "label": "entailment"}
    write(folder / "data/nli/multinli_en/train.jsonl", f"{json.dumps(pair)}\n" * 70)
    return folder


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_operations_are_those_of_the_products_and_of_attention(benchmarks):
    import pretrain

    layer = torch.nn.TransformerEncoderLayer(8, 2, 32, bias=False)
    weights = sum(weight.numel() for weight in layer.parameters() if weight.dim() == 2)
    shape = {"layers": 3, "hidden": 8, "intermediate": 32}
    assert pretrain.encoder_flops(shape, 0) == 6 * 3 * weights
    # Forward: scores and weighted means, a product of 2 x length x neurons each; backward twice as much.
    assert pretrain.encoder_flops(shape, 5) - pretrain.encoder_flops(shape, 0) == 3 * 3 * (2 * 2 * 5 * 8)
    assert pretrain.head_flops(shape, 100) == 6 * (8 * 8 + 8 * 100)


def test_kernels_beside_each_other_count_once(benchmarks):
    from pretrain_profile import covered

    assert covered([(5, 6), (0, 2), (1, 3), (1, 2)]) == 4
    assert covered([]) == 0


@pytest.mark.parametrize(("most", "profiled"), [(100, 20), (5, 2), (1, 0)])
def test_steps_under_the_profiler_follow_the_measured_ones(benchmarks, monkeypatch, most, profiled):
    import pretrain_profile
    from small_run import Bench

    def busy_seconds(step, steps):
        assert steps == profiled
        for number in range(steps):
            step(number)
        return 1.0

    monkeypatch.setattr(pretrain_profile, "busy_seconds", busy_seconds)
    bench, seen = Bench.__new__(Bench), []
    # As on a GPU, but for the waiting and for the driver.
    bench.cuda, bench.device, bench.card = True, torch.device("cpu"), "0"
    count, result = bench.steady(seen.append, most)
    assert seen == list(range(most))
    assert count == result["steps_measured"] == most - profiled
    assert (result["busy_kernels"] is None) == (profiled == 0)


def test_a_pace_ends_by_steps_or_by_seconds(benchmarks):
    from train_step_peer import Pace

    pace = Pace(torch.device("cpu"), steps=6, warm=2)
    assert [pace.over(step) for step in range(1, 7)] == [False] * 5 + [True]
    assert (pace.measured, pace.each >= 0) == (4, True)
    pace = Pace(torch.device("cpu"), steps=1000, warm=2, seconds=0)
    assert [pace.over(step) for step in (1, 2, 3)] == [False, False, True]
    assert (pace.measured, math.isnan(pace.each)) == (1, False)


def test_settings_are_read_from_the_workflows_own_command_line(root, benchmarks):
    from small_run_tuning import flags, known

    from crossalign.catalog.addresses import Tuned
    from crossalign.catalog.commands import finetune_options
    from crossalign.catalog.config import load
    from crossalign.engine.hyperparameters import Settings

    config = load([root / "config.small.yaml"])
    values = flags(finetune_options(config, Tuned("small", "parsing", "en_ewt", "ref", 1)))
    settings = Settings(**known(Settings, values))
    told = config["finetune"]["parsing"]
    assert (settings.batch, settings.epochs, settings.learning_rate) == (
        told["batch"],
        told["epochs"],
        told["learning_rate"],
    )
    assert (settings.betas, settings.warmup, settings.selection) == ((0.9, 0.99), 0.1, "best")


@pytest.mark.slow
def test_it_runs_on_a_cpu(root, prepared, tmp_path):
    command = [sys.executable, str(root / "benchmarks" / "small_run.py"), "--data", str(prepared), "--device", "cpu"]
    command += ["--quick", "--parts", "pretrain", "parsing", "nli", "--out", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert found["pretrain"]["steps_measured"] > 1
    assert found["pretrain"]["mfu_percent"] is None
    for name in ("parsing", "nli"):
        row = found[name]
        # 70 examples in batches of 32, two epochs.
        assert row["process"]["steps"] == row["peer_fp32"]["steps"] == 6
        assert row["loop"]["steps_measured"] == 3
        assert row["process"]["process_s"] > row["process"]["training_s"] > 0
        assert row["ratio"] == round(row["peer_fp32"]["extrapolated_s"] / row["process"]["training_s"], 2)
    assert found["parsing"]["loop"]["tokens_per_step"] == pytest.approx(4 * 70 / 3, abs=0.1)
    assert done.stdout.count("not measured") > 4


def test_missing_data_is_named(root, tmp_path):
    command = [sys.executable, str(root / "benchmarks" / "small_run.py"), "--data", str(tmp_path), "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{tmp_path}/vocabularies/small/tokenizer.json" in done.stderr
    assert "Traceback" not in done.stderr
