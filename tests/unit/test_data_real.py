"""Real files: as many sentences, words, pairs and questions as the manifest counts, and sound when prepared."""

import csv
import gzip
import os
from functools import partial
from pathlib import Path

import pytest
from tests.prepared import validate

from crossalign.data.conllu import read_sentences, write_sentences
from crossalign.data.lines import write_rows
from crossalign.data.ner import FORMATS, read_ner
from crossalign.data.nli import read_pairs
from crossalign.data.qa import prepare_questions, read_questions
from crossalign.data.report import Report

FOLDER = Path(os.environ.get("CROSSALIGN_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))


def manifest(name):
    """The rows whose file is stored; none where the folder is absent, and the tests are skipped."""
    path = FOLDER / "manifest" / name
    if not path.is_file():
        return [pytest.param(None, id="absent")]
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [pytest.param(row, id=row["stored_as"]) for row in rows if row["stored_as"] not in ("", "-")]


def of(*prefixes):
    rows = manifest("other.tsv")
    return [row for row in rows if row.values[0] is None or row.values[0]["stored_as"].startswith(prefixes)]


def opened(path):
    return gzip.open(path, "rt", encoding="utf-8", newline="\n")


@pytest.fixture
def prepare(shared, tmp_path):
    """Prepares the stored file of a row: the report, and the prepared file."""

    def run(row, read, write=write_rows):
        report, out = Report(), tmp_path / "out"
        with opened(shared / "data" / row["stored_as"]) as stream, out.open("w", encoding="utf-8", newline="\n") as to:
            write(read(stream, row["stored_as"], report), to)
        return report, out

    return run


@pytest.mark.parametrize("row", manifest("ud.tsv"))
def test_treebanks(row, prepare):
    tweets = row["stored_as"].startswith("ud/Tweebank")
    report, out = prepare(row, partial(read_sentences, several_roots=tweets), write_sentences)
    assert (report.read, report.counts["words"]) == (int(row["sentences"]), int(row["words"]))
    assert validate("trees", out, several_roots=tweets) == report.read
    assert report.counts["sentences_with_several_roots"] == 0 or tweets


NER_FORMATS = {"wikiann": "wikiann-plain", "wikineural": "wikineural", "masakhaner2": "masakhaner"}


@pytest.mark.parametrize("row", of("wikiann/", "wikineural/", "masakhaner2/"))
def test_entities(row, prepare):
    form = FORMATS[NER_FORMATS[row["stored_as"].partition("/")[0]]]
    report, out = prepare(row, lambda *given: read_ner(*given[:2], form, row["language"], row["split"], given[2]))
    assert report.read == report.kept == int(row["units"]) == validate("ner", out)


@pytest.mark.parametrize("row", of("xnli/", "xnli_extension/"))
def test_pairs(row, prepare):
    report, out = prepare(row, read_pairs)
    assert report.read == report.kept == int(row["units"]) == validate("nli", out)
    if row["stored_as"].startswith("xnli/"):
        assert report.counts["neutral"] == report.counts["entailment"] == report.counts["contradiction"]


@pytest.mark.parametrize("row", of("squad/", "xquad/", "mlqa/", "tydiqa/"))
def test_questions(row, prepare):
    report, out = prepare(row, lambda stream, name, report: prepare_questions(read_questions(stream, name), report))
    assert report.read == int(row["units"])
    assert not report.repaired["answer offset"]
    if row["dataset"].startswith("TyDi") and row["split"] == "dev":
        assert report.dropped == {"no answer": report.read}  # this copy came without its answers
    else:
        assert set(report.dropped) <= {"impossible"}
        assert validate("qa", out) == report.kept
