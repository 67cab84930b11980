"""Every promised file exists, in its original format, with the same bytes each time."""

import gzip
import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from world_for_tests import small_settings

from crossalign.runtime.errors import UserError
from demo_world.write import write_world


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_world(small_settings(), folder, jobs=1)
    return folder


def test_checksums_cover_every_file(made: Path) -> None:
    listed = {}
    for line in (made / "SHA256SUMS").read_text().splitlines():
        digest, path = line.split("  ")
        listed[path] = digest
        assert hashlib.sha256((made / path).read_bytes()).hexdigest() == digest
    assert list(listed) == sorted(listed)
    files = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    assert files == set(listed)


def test_every_byte_is_fixed(made: Path) -> None:
    """On every platform and with every Python; the bytes of parquet files carry the version of pyarrow."""
    listed = [line for line in (made / "SHA256SUMS").read_text().splitlines() if not line.endswith(".parquet")]
    assert hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16] == "4d6b1ef40ff8ea91"


def test_same_bytes_with_other_processes_and_others_with_another_seed(made: Path, tmp_path: Path) -> None:
    paths = write_world(small_settings(), tmp_path, ["ud/tr_", "bitext/wikimatrix/WikiMatrix.en-hi", "qa/mlqa"], jobs=2)
    assert len(paths) > 5
    for path in paths:
        assert (tmp_path / path).read_bytes() == (made / path).read_bytes(), path
    write_world({**small_settings(), "seed": 1}, tmp_path, ["ud/en_ewt/dev"])
    assert (tmp_path / "ud/en_ewt/dev.conllu").read_bytes() != (made / "ud/en_ewt/dev.conllu").read_bytes()


@pytest.mark.parametrize("code", ["es", "hi"])
def test_bitext_goes_line_by_line_with_the_tokens_of_moses(made: Path, code: str) -> None:
    sacremoses = pytest.importorskip("sacremoses")
    packed = (made / f"bitext/wikimatrix/WikiMatrix.en-{code}.tsv.gz").read_bytes()
    raw = [line.split("\t") for line in gzip.decompress(packed).decode().splitlines()]
    lines = (made / f"truth/bitext-{code}.tsv").read_text(encoding="utf-8").splitlines()
    split = [line.split("\t") for line in lines]
    links = (made / f"truth/links-{code}.txt").read_text().split("\n")[:-1]
    assert len(raw) == len(split) == len(links) == 60
    scores = [float(score) for score, *_ in raw]
    assert scores == sorted(scores, reverse=True) and [row[0] for row in raw] == [row[0] for row in split]
    for side, language in ((1, "en"), (2, code)):
        tokeniser = sacremoses.MosesTokenizer(language)
        for texts, tokens, pairs in zip(raw, split, links, strict=True):
            written = tokens[side].split(" ")
            assert tokeniser.tokenize(texts[side], escape=False) == written
            assert all(int(pair.split("-")[side - 1]) < len(written) for pair in pairs.split())


def test_errors_name_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file of the world starts with nowhere/"):
        write_world(small_settings(), tmp_path, ["nowhere/"])
    with pytest.raises(UserError, match="jobs is 0"):
        write_world(small_settings(), tmp_path, jobs=0)
    with pytest.raises(UserError, match="scale 'huge' is unknown"):
        write_world(small_settings(), tmp_path, scale="huge")


def test_large_sets_repeat_their_entries(made: Path, tmp_path: Path) -> None:
    only = ["nli/multinli", "qa/squad/train", "bitext/wikimatrix/WikiMatrix.en-hi", "truth/links-hi", "truth/bitext-hi"]
    only += ["text/wikipedia/ug", "text/narabizi", "ner/wikiann"]
    write_world({**small_settings(), "distinct": 4}, tmp_path, only)
    before, after = _inference_records(made), _inference_records(tmp_path)
    assert len(after) == len(before) == 60
    assert [record["sentence1"] for record in after] == [record["sentence1"] for record in before[:4]] * 15
    assert len({record["pairID"] for record in after}) == 60
    asked = [_asked_in(folder / "qa/squad/train-v1.1.json") for folder in (made, tmp_path)]
    assert len(asked[0]) == len(asked[1]) == len({item["id"] for item in asked[1]}) == 11
    assert len({item["question"] for item in asked[1]}) < len({item["question"] for item in asked[0]})
    packed = (tmp_path / "bitext/wikimatrix/WikiMatrix.en-hi.tsv.gz").read_bytes()
    raw = gzip.decompress(packed).decode().splitlines()
    assert len(set(raw)) == len(raw) == 60  # a pair that came twice would be dropped
    assert [float(line.split("\t")[0]) for line in raw] == sorted(float(line.split("\t")[0]) for line in raw)[::-1]
    assert raw[1] == raw[0].replace("\t", "\t1 ")
    links = (tmp_path / "truth/links-hi.txt").read_text().splitlines()
    assert links[1].split() == [
        "0-0",
        *("-".join(str(int(n) + 1) for n in pair.split("-")) for pair in links[0].split()),
    ]
    lines = (tmp_path / "text/narabizi/narabizi.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 6 and lines[4] == f"1 {lines[0]}"


def _inference_records(folder: Path) -> list[dict]:
    with zipfile.ZipFile(folder / "nli/multinli_1.0.zip") as archive:
        lines = archive.read("multinli_1.0/multinli_1.0_train.jsonl").decode().splitlines()
    return [json.loads(line) for line in lines]


def _asked_in(file: Path) -> list[dict]:
    articles = json.loads(file.read_text(encoding="utf-8"))["data"]
    return [item for article in articles for paragraph in article["paragraphs"] for item in paragraph["qas"]]
