"""What people are told about downloads: missing files, licences."""

from dataclasses import replace

import pytest

from crossalign.fetch.listing import is_non_commercial, licence_summary, missing, missing_message
from crossalign.fetch.register import Dataset, Model

FREE = Dataset("ud/a.conllu", "r2.4", "https://example.org/a", None, 1_500_000, None, "CC-BY-SA-4.0", "")
CLOSED = Dataset("nli/x.zip", "1.0", "https://example.org/x", None, None, None, "CC-BY-NC-4.0", "")
HAND = Dataset("ner/train.txt", "2003", "manual:https://example.org/form", None, 10, None, "Reuters", "")
MODEL = Model("mbert", "own/bert", "main", 700_000_000, "Apache-2.0", "mlm", None, 12, 768, "104", "")
ROWS = [FREE, CLOSED, HAND, MODEL]


@pytest.mark.parametrize(
    ("licence", "answer"),
    [
        ("CC-BY-NC-4.0", True),
        ("CC BY-NC-SA 3.0", True),
        ("cc-by-nc", True),
        ("research only", True),
        ("Non-Commercial", True),
        ("CC-BY-4.0", False),
        ("Apache-2.0", False),
        ("NCSA", False),
        ("CC-BY-ND-4.0", False),
    ],
)
def test_non_commercial(licence, answer):
    assert is_non_commercial(licence) is answer


def test_missing_files_with_address_and_place(tmp_path):
    text = missing_message(ROWS, tmp_path)
    assert text.splitlines()[0] == (
        f"4 of the files that are needed are missing under {tmp_path} (701.5 MB + 1 of unknown size in all):"
    )
    assert "nli/x.zip  (CC-BY-NC-4.0, NON-COMMERCIAL)" in text
    assert f"from https://example.org/a\n      to   {tmp_path}/ud/a.conllu\n" in text
    place = tmp_path / "by-hand" / "ner" / "train.txt"
    assert f"by hand, because of its terms, from https://example.org/form\n      to   {place}\n" in text
    assert text.endswith(f"from https://huggingface.co/own/bert/tree/main\n      to   {tmp_path}/models/mbert/")


def test_model_by_hand(tmp_path):
    text = missing_message([replace(MODEL, hub="manual:https://example.org/form")], tmp_path)
    assert "by hand, because of its terms, from https://example.org/form" in text


def test_what_is_there_is_not_missing(tmp_path):
    (tmp_path / "ud").mkdir()
    (tmp_path / "ud" / "a.conllu").touch()
    (tmp_path / "models" / "mbert").mkdir(parents=True)
    # A model is there only when its list is.
    assert missing(ROWS, tmp_path) == [CLOSED, HAND, MODEL]
    (tmp_path / "models" / "mbert" / "complete.json").touch()
    assert missing(ROWS, tmp_path) == [CLOSED, HAND]
    assert missing_message([FREE, MODEL], tmp_path) == ""


def test_licences_with_conditions_come_first():
    lines = licence_summary([FREE, FREE, CLOSED, HAND]).splitlines()
    assert lines[0].split() == ["licence", "files", "size"]
    assert lines[1].split("  ")[0] == "CC-BY-NC-4.0"
    assert lines[1].endswith("NON-COMMERCIAL use only")
    assert lines[2].split() == ["CC-BY-SA-4.0", "2", "3.0", "MB"]
    assert lines[3].endswith("1 by hand")
