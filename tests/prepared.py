"""Prepared files are what training reads: how many items one has, after a look at each."""

import json
from itertools import pairwise
from pathlib import Path

from crossalign.data.conllu import read_sentences
from crossalign.data.ner import to_iob2
from crossalign.data.nli import LABELS
from crossalign.data.report import Report, report_path
from crossalign.data.text import squeeze

KEYS = {"ner": ["id", "tokens", "tags"], "nli": ["id", "premise", "hypothesis", "label"]}
KEYS["qa"] = ["id", "question", "context", "answers"]


def validate(kind: str, path: Path, several_roots: bool = False) -> int:
    """How many items a prepared file has; the report beside it says the same."""
    with path.open(encoding="utf-8", newline="\n") as stream:
        count = trees(stream, several_roots) if kind == "trees" else lines(kind, stream.read().split("\n"))
    assert count > 0, path
    if report_path(path).is_file():
        report = json.loads(report_path(path).read_text(encoding="utf-8"))
        assert report["kept"] == count == report["read"] - sum(report["dropped"].values()), path
    return count


def trees(stream, several_roots):
    """Nothing is left to mend or to skip."""
    report = Report()
    list(read_sentences(stream, "trees", report, several_roots=several_roots))
    mended = report.counts["multiword_tokens"] + report.counts["empty_nodes"] + report.counts["subtypes_cut"]
    assert not report.repaired and not mended
    return report.read


def lines(kind, found):
    assert found.pop() == "" and all(found)
    if kind == "bitext":
        fields = [line.split("\t") for line in found]
        assert all(len(row) == 3 and row[1:] == [squeeze(side) for side in row[1:]] for row in fields)
        assert all(float(row[0]) >= float(after[0]) for row, after in pairwise(fields))
        assert len({tuple(row[1:]) for row in fields}) == len(fields)
    elif kind in ("text", "parallel"):
        assert found == [squeeze(line) for line in found]
    else:
        rows = [json.loads(line) for line in found]
        assert all(list(row) == KEYS[kind] for row in rows) and len({row["id"] for row in rows}) == len(rows)
        assert all(map(globals()[kind], rows))
    return len(found)


def ner(row):
    return len(row["tokens"]) == len(row["tags"]) > 0 and all(row["tokens"]) and not to_iob2(row["tags"])[1]


def nli(row):
    return row["label"] in LABELS and all(isinstance(row[side], str) for side in ("premise", "hypothesis"))


def qa(row):
    answers = row["answers"]
    return answers and all(row["context"].startswith(each["text"], each["start"]) for each in answers if each["text"])
