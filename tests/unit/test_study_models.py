"""The models of a study, found before it is planned: folders, the hub on the loopback, and what is refused."""

import csv
import json
import runpy
import subprocess
import sys

import pytest
import yaml
from tests.unit.tokenizers_for_tests import bert_tokenizer

from crossalign.catalog.config import ROOT, load
from crossalign.catalog.stand_in import base_name
from crossalign.engine.vocabulary import coverage
from crossalign.papers.all_items import catalog_of
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

ONE = "1" * 40
BERT = {"model_type": "bert", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2}
BERT |= {"intermediate_size": 16}


@pytest.fixture
def resolve(root, tmp_path, monkeypatch):
    """The program on some models, with a config of its own for downloads; what it writes, by run."""
    place = {"folder": str(tmp_path / "downloads"), "lock": str(tmp_path / "lock.tsv"), "attempts": 1}
    (tmp_path / "place.yaml").write_text(yaml.safe_dump({"downloads": place}), encoding="utf-8")
    main = runpy.run_path(str(root / "scripts" / "resolve_models.py"))["main"]

    def run(*arguments, configs=()):
        command = ["resolve_models.py", *map(str, arguments), "--configs", str(tmp_path / "place.yaml"), *configs]
        monkeypatch.setattr(sys, "argv", command)
        monkeypatch.chdir(tmp_path)
        try:
            main()
        except UserError as error:
            return str(error)
        files = (tmp_path / "results").glob("*/models.yaml")
        return {file.parent.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}

    return run


def folder_of(tmp_path, **changes):
    """A folder that looks like a model."""
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(BERT | changes), encoding="utf-8")
    return folder


def test_a_folder_takes_the_place_of_mbert_everywhere(root, tmp_path, resolve):
    """No setting of the run names the papers' model any more, and Snakemake and the planner can read it."""
    folder = folder_of(tmp_path, num_hidden_layers=12)
    told = resolve(folder)["mine"]
    assert told["run"] == "mine"
    assert told["study"]["models"] == {"mine": {"folder": str(folder), "layers": 12, "neurons": 8}}
    config = load([tmp_path / "results/mine/models.yaml"])
    assert {config[paper]["base"] for paper in ("align-predict", "adjust", "talk")} == {"mine"}
    beside = config["study"]["beside"]
    assert config["anc"]["schemes"] == ["mine"] and config["anc"]["known_models"] == ["mine", *beside]
    catalog = catalog_of(config)
    published = {base_name(run) for run in catalog.runs()} - {"mine", "bilstm", *beside}
    assert all(name.startswith("mono-") for name in published)
    # What cannot be made has a reason, and every paper has something left.
    assert all(len(reason) > 15 for reason in config["skip"].values())
    assert {item.partition("/")[0] for item in catalog.items} == set(config["papers"])


def test_languages_seeds_a_mirror_and_a_name(root, tmp_path, resolve):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    options = ("--languages", "de", "ru", "--seeds", "1", "2", "--run", "x", "--mirror", mirror)
    told = resolve(root / "resources/demo/models/mbert", *options)["x"]
    assert told["run"] == "x" and told["seeds"] == told["anc"]["seeds"] == [1, 2]
    assert told["downloads"]["mirror"] == f"file://{mirror}" and told["downloads"]["mirror_checksums"] == "mirror"
    paper = told["align-predict"]
    assert paper["languages"] == ["en", "de", "ru"] and paper["sources"] == ["en", "ru"]
    assert paper["similarity_languages"] == ["ru", "de"] and paper["extra_targets"] == []
    assert resolve("mbert", "--mirror", tmp_path / "none") == f"--mirror {tmp_path}/none: no such folder"


def test_several_models_are_several_runs(resolve):
    assert sorted(resolve("xlmr-base", "mbert")) == ["mbert", "xlmr-base"]
    assert resolve("xlmr-base", "mbert", "--run", "x").startswith("RUN names one run: leave it out")


def test_sets_of_layers_fit_the_depth(tmp_path, resolve):
    """Twelfths of a deeper or a shallower model; a set that would have no layer is none."""
    paper = resolve(folder_of(tmp_path, num_hidden_layers=18))["mine"]["align-predict"]
    assert paper["layer_pairs"] == ["1-3", "4-6", "7-9", "10-12", "13-15", "16-18"]
    assert paper["layer_sets"][:3] == ["all", "1-2", "3"]
    rescaled = runpy.run_path(str(ROOT / "scripts" / "resolve_models.py"))["rescaled"]
    assert rescaled(["all", "1-2", "3-4", "5-6"], 3) == ["all", "1", "2"]
    assert rescaled(["1-2", "9-12", "1"], 24) == ["1-4", "17-24", "1-2"]


def test_languages_that_a_model_has_read_are_left_out(root, resolve):
    talk = resolve("xlmr-base")["xlmr-base"]["talk"]
    assert talk["read_languages"] == ["ug"]
    assert "ug" not in talk["languages"] and "ug" not in talk["profile_languages"] and "wo" in talk["profile_languages"]
    skip = resolve("xlmr-base")["xlmr-base"]["skip"]
    assert skip["talk/figure3"] == "no language in another script is left: the model has read ug"
    # Of a model of which nothing is known nothing is left out.
    talk = resolve("mbert")["mbert"]["talk"]
    assert "ug" in talk["profile_languages"] and "read_languages" not in talk


def test_a_config_that_extends_the_demo_is_laid_over_it(root, resolve):
    config = str(root / "resources/demo/study.yaml")
    told = resolve(root / "resources/demo/models/xlmr-base", configs=[config])["xlmr-base"]
    assert told["world"] and told["downloads"]["mirror"] == "file://results/xlmr-base/mirror"
    assert told["seeds"] == [1] and "study" in told and told["talk"]["base"] == "xlmr-base"


def test_a_repository_is_pinned_and_only_its_config_is_fetched(web, resolve, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", web.url)
    files = {"config.json": json.dumps(BERT).encode(), "tokenizer.json": b"{}", "model.safetensors": b"weights"}
    web.publish("models", "own/My_Bert", ONE, files, ("main",))
    entry = {"hub": "own/My_Bert", "revision": ONE, "layers": 3, "neurons": 8}
    assert resolve("own/My_Bert")["my_bert"]["study"]["models"] == {"my_bert": entry}
    assert [file.name for file in (tmp_path / "downloads/models/my_bert").iterdir()] == ["config.json"]
    assert "model own/nothing at revision main: " in resolve("own/nothing")
    web.publish("models", "own/slow", ONE, {name: files[name] for name in files if name != "tokenizer.json"}, ("main",))
    assert "own/slow at revision main holds no fast tokenizer" in resolve("own/slow")
    web.publish("models", "own/pickle", ONE, {"config.json": files["config.json"]}, ("main",))
    assert "holds no safetensors" in resolve("own/pickle")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (None, "config.json is missing"),
        ({"model_type": "albert", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2}, "'albert'"),
        ({"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 8}, "vit"),
        ({"model_type": "nothing", "auto_map": {"AutoModel": "code.Model"}}, "nothing"),
    ],
)
def test_folders_that_cannot_be_studied(resolve, tmp_path, settings, told):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    if settings:
        (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    message = resolve(folder)
    assert isinstance(message, str) and told in message
    assert len(message.splitlines()) == 1


def test_sources_that_are_no_model(root, resolve, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(BERT), encoding="utf-8")
    told = {
        (tmp_path,): f"MODEL {tmp_path}: it has no fast tokenizer (tokenizer.json)",
        ("no/such/folder",): "MODEL no/such/folder: no such folder, and no repository of the hub, which is owner/name",
        (root / "resources/demo/models/mbert", "mbert"): (
            "MODEL mbert: another model is called 'mbert' too; rename one of the folders"
        ),
    }
    assert {sources: resolve(*sources) for sources in told} == told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mono-small", "'mono-small' means a model that is trained here; rename the folder"),
        ("BiLSTM", "'bilstm' means a model that is trained here; rename the folder"),
        ("модель", "a model is named after its folder, by the letters a-z and digits, and there are none"),
    ],
)
def test_folders_whose_name_cannot_be_taken(resolve, tmp_path, name, told):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(BERT), encoding="utf-8")
    message = resolve(folder)
    assert isinstance(message, str) and message.startswith(f"MODEL {folder}: {told}")


def test_a_repository_whose_name_is_taken_is_called_by_its_owner_too(web, resolve, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", web.url)
    files = {"config.json": json.dumps(BERT).encode(), "tokenizer.json": b"{}", "model.safetensors": b"weights"}
    web.publish("models", "own/mono-bert", ONE, files, ("main",))
    assert list(resolve("own/mono-bert")) == ["own-mono-bert"]


def test_letters_that_a_vocabulary_lacks():
    counts, lacking = coverage(bert_tokenizer(), [["the", "catx", "кот", "."]] * 5)
    assert counts == {"words": 20, "pieces": 1.25, "unknown": 25.0, "letters": 9} and lacking[-3:] == ["к", "о", "т"]


def test_the_coverage_as_a_program(root, tmp_path):
    (tmp_path / "ug.txt").write_text("ئۇيغۇر 12 ꙮꙮꙮꙮꙮ\n" * 2 + "…\n", encoding="utf-8")
    command = [sys.executable, str(root / "scripts/audit_coverage.py"), "--out", str(tmp_path / "a.csv"), "--model"]
    command += [str(root / "resources/demo/models/mbert"), "--texts", f"ug={tmp_path}/ug.txt"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (row,) = csv.DictReader((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines())
    assert (row["language"], row["words"]) == ("ug", "4") and "ꙮ" in row["which"] and float(row["unknown"]) >= 50
    (tmp_path / "ug.txt").write_text("12\n", encoding="utf-8")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == f"error: {tmp_path}/ug.txt: no words in it\n"
