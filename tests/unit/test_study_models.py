"""The models of a study, found before it is planned: folders, the hub on the loopback, and what is refused."""

import csv
import json
import runpy
import subprocess
import sys

import pytest
import yaml
from tests.unit.tokenizers_for_tests import bert_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from crossalign.engine.vocabulary import audit, coverage
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

ONE = "1" * 40
BERT = {"model_type": "bert", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2}
BERT |= {"intermediate_size": 16}


@pytest.fixture
def resolve(root, tmp_path, monkeypatch):
    """The program on some models, with a config of its own for downloads."""
    place = {"folder": str(tmp_path / "downloads"), "lock": str(tmp_path / "lock.tsv"), "attempts": 1}
    (tmp_path / "place.yaml").write_text(yaml.safe_dump({"downloads": place}), encoding="utf-8")

    main = runpy.run_path(str(root / "scripts" / "resolve_models.py"))["main"]

    def run(*arguments):
        files = [str(root / "config/study.yaml"), str(tmp_path / "place.yaml")]
        command = ["resolve_models.py", *map(str, arguments), "--configs", *files]
        command += ["--out", str(tmp_path / "models.yaml")]
        monkeypatch.setattr(sys, "argv", command)
        try:
            main()
        except UserError as error:
            return str(error)
        return yaml.safe_load((tmp_path / "models.yaml").read_text(encoding="utf-8"))

    return run


def test_a_folder_with_languages_seeds_and_a_name(root, resolve):
    found = resolve(root / "resources/demo/models/mbert", "--languages", "de", "--seeds", "1", "2", "--run", "x")
    entry = {"folder": str(root / "resources/demo/models/mbert"), "layers": 12, "neurons": 64}
    assert found == {"run": "x", "seeds": [1, 2], "study": {"models": {"mbert": entry}, "languages": ["en", "de"]}}


def test_a_repository_is_pinned_and_only_its_config_is_fetched(web, resolve, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", web.url)
    files = {"config.json": json.dumps(BERT).encode(), "tokenizer.json": b"{}", "model.safetensors": b"weights"}
    web.publish("models", "own/My_Bert", ONE, files, ("main",))
    entry = {"hub": "own/My_Bert", "revision": ONE, "layers": 3, "neurons": 8}
    assert resolve("own/My_Bert", "xlmr-base") == {"study": {"models": {"my_bert": entry, "xlmr-base": {}}}}
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
    assert list(resolve("own/mono-bert")["study"]["models"]) == ["own-mono-bert"]


def test_words_with_unknown_letters_and_shared_pieces():
    texts = {"en": [["the", "cat", "sat"]], "xx": [["the", "catx", "кот", "."]]}
    found = audit(bert_tokenizer(), texts, "en")
    assert found["en"] == {"words": 3, "pieces": 1.0, "unknown": 0.0, "bytes": 0.0, "shared": 100.0}
    # the, cat ##x, [UNK] and a full stop, which is no letter: two of three pieces are English too.
    assert found["xx"]["pieces"] == 1.25 and found["xx"]["unknown"] == 25.0
    assert found["xx"]["shared"] == pytest.approx(200 / 3)


def test_letters_spelt_in_bytes():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", "<pad>", "<unk>", *alphabet, "Ġt"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("Ġ", "t")]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()
    found = audit(tokenizer, {"en": [["to", "at"]], "ru": [["то", "to"]]}, "en")
    # Of `то` each letter is two bytes.
    assert found["en"]["bytes"] == 0.0 and found["ru"]["bytes"] == 50.0
    assert found["ru"]["pieces"] == (5 + 2) / 2
    assert found["ru"]["unknown"] == 0.0


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


def test_the_audit_as_a_program(root, tmp_path):
    rows = "# sent_id = 1\n1\tThe\t_\tDET\t_\t_\t0\troot\t_\t_\n\n"
    for lang in ("en", "de"):
        (tmp_path / f"{lang}.conllu").write_text(rows, encoding="utf-8")
    command = [sys.executable, str(root / "scripts/audit_tokenizer.py"), "--out", str(tmp_path / "a.csv"), "--model"]
    command += [str(root / "resources/demo/models/mbert"), "--texts"]
    files = [f"{lang}={tmp_path}/{lang}.conllu" for lang in ("en", "de")]
    done = subprocess.run([*command, *files], capture_output=True)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "a.csv").read_text(encoding="utf-8")
    assert text.startswith("language,words,pieces,unknown,bytes,shared\nen,1,")
    done = subprocess.run([*command, f"de={tmp_path}/de.conllu"], capture_output=True, text=True)
    assert done.stderr == "error: --texts: en=FILE is missing, the language that pieces are shared with\n"
