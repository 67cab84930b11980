"""The registers: what is read from them, what is said about mistakes in them, and what people are told."""

from dataclasses import replace

import pytest

from crossalign.fetch.listing import is_non_commercial, licence_summary, missing, missing_message
from crossalign.fetch.register import (
    DATASET_COLUMNS,
    MODEL_COLUMNS,
    Dataset,
    Model,
    read_datasets,
    read_models,
    split_hub,
)
from crossalign.runtime.errors import UserError

GOOD = dict.fromkeys(DATASET_COLUMNS, "") | {
    **{"path": "ud/en_ewt/train.conllu", "version": "r2.4", "url": "https://example.org/train.conllu", "bytes": "12"},
    **{"checksum": "git:" + "AB" * 20, "licence": "CC-BY-SA-4.0", "use": "trees"},
}
MODEL = dict.fromkeys(MODEL_COLUMNS, "") | {
    **{"name": "mbert", "hub": "google-bert/bert-base-multilingual-cased", "revision": "main", "licence": "Apache-2.0"},
    **{"objective": "mlm", "parameters": "177974523", "layers": "12", "neurons": "768", "languages": "104"},
}


def table(rows, columns=DATASET_COLUMNS) -> str:
    lines = ["\t".join(columns), *("\t".join(row[column] for column in columns) for row in rows)]
    return "\n".join(lines) + "\n"


def test_rows_are_read(tmp_path):
    file = tmp_path / "datasets.tsv"
    hub = GOOD | {"path": "b", "url": "hub://datasets/o/r/deep/f.parquet", "bytes": "", "checksum": "", "mirror": ""}
    hand = GOOD | {"path": 'it"s', "url": "manual:https://example.org/form", "mirror": "https://example.com/x"}
    file.write_text(table([GOOD, hub, hand]), encoding="utf-8")
    rows = read_datasets(file)
    assert list(rows) == ["ud/en_ewt/train.conllu", "b", 'it"s']
    expected = {**GOOD, "mirror": None, "bytes": 12, "checksum": "git:" + "ab" * 20}
    assert rows["ud/en_ewt/train.conllu"] == Dataset(**expected)
    assert (rows["b"].bytes, rows["b"].checksum) == (None, None)
    assert split_hub(rows["b"].url) == ("dataset", "o/r", "deep/f.parquet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checksum": "md5:" + "0" * 32}, "line 3: 'md5:.*' is not a checksum: write sha256:"),
        ({"url": "ftp://example.org/x"}, "line 3: url 'ftp://example.org/x' has the unknown scheme 'ftp'"),
        ({"url": "https://example.org/a b"}, "must not hold spaces"),
        ({"url": "http://example.org/x", "checksum": ""}, "plain http, which needs a checksum"),
        ({"url": "hub://datasets/owner/file"}, "should read hub://datasets/"),
        ({"mirror": "manual:https://example.org"}, "mirror .* can be fetched"),
        ({"bytes": "12k"}, "line 3: bytes '12k' is not a whole number"),
        ({"path": "/etc/passwd"}, "path '/etc/passwd' must be relative"),
        ({"path": "a\\b"}, "must be relative"),
        ({"path": "models/x"}, "belongs to models.tsv"),
        ({"version": ""}, "version is empty"),
    ],
)
def test_mistakes_in_data_sets(tmp_path, change, message):
    file = tmp_path / "datasets.tsv"
    file.write_text(table([GOOD, GOOD | {"path": "other"} | change]), encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        read_datasets(file)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table([GOOD, GOOD]), "line 3: path 'ud/en_ewt/train.conllu' is already in line 2"),
        ("", "line 1: missing column path, version"),
        (table([GOOD | {"size": "1"}], [*DATASET_COLUMNS, "size"]), "line 1: unknown or repeated column size"),
        (table([GOOD]) + "a\tb\n", "line 3: 2 fields, but the header has 8"),
    ],
)
def test_mistakes_in_the_table(tmp_path, text, message):
    file = tmp_path / "datasets.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_datasets(file)


def test_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(UserError, match="cannot read this register: No such file"):
        read_datasets(tmp_path / "none.tsv")
    (tmp_path / "x.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not a tab-separated UTF-8 file"):
        read_datasets(tmp_path / "x.tsv")


def test_models(tmp_path):
    file = tmp_path / "models.tsv"
    file.write_text(table([MODEL], MODEL_COLUMNS), encoding="utf-8")
    model = read_models(file)["mbert"]
    assert (model.hub, model.layers, model.bytes) == ("google-bert/bert-base-multilingual-cased", 12, None)
    assert model.path == "models/mbert"
    file.write_text(table([MODEL | {"hub": "manual:https://example.org/form"}], MODEL_COLUMNS), encoding="utf-8")
    assert read_models(file)["mbert"].hub == "manual:https://example.org/form"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "a/b"}, "line 2: name 'a/b' must be made of"),
        ({"hub": "bert"}, "hub 'bert' should read <owner>/<repository>"),
        ({"objective": "seq2seq"}, "objective 'seq2seq' is not one of mlm, clm"),
    ],
)
def test_mistakes_in_models(tmp_path, change, message):
    file = tmp_path / "models.tsv"
    file.write_text(table([MODEL | change], MODEL_COLUMNS), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_models(file)


FREE = Dataset("ud/a.conllu", "r2.4", "https://example.org/a", None, 1_500_000, None, "CC-BY-SA-4.0", "")
CLOSED = Dataset("nli/x.zip", "1.0", "https://example.org/x", None, None, None, "CC-BY-NC-4.0", "")
HAND = Dataset("ner/train.txt", "2003", "manual:https://example.org/form", None, 10, None, "Reuters", "")
MBERT = Model("mbert", "own/bert", "main", 700_000_000, "Apache-2.0", "mlm", None, 12, 768, "104", "")
ROWS = [FREE, CLOSED, HAND, MBERT]


def test_non_commercial():
    closed = ["CC-BY-NC-4.0", "CC BY-NC-SA 3.0", "cc-by-nc", "research only", "Non-Commercial"]
    free = ["CC-BY-4.0", "Apache-2.0", "NCSA", "CC-BY-ND-4.0"]
    assert [name for name in closed + free if is_non_commercial(name)] == closed


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

    text = missing_message([replace(MBERT, hub="manual:https://example.org/form")], tmp_path)
    assert "by hand, because of its terms, from https://example.org/form" in text


def test_what_is_there_is_not_missing(tmp_path):
    (tmp_path / "ud").mkdir()
    (tmp_path / "ud" / "a.conllu").touch()
    (tmp_path / "models" / "mbert").mkdir(parents=True)
    # A model is there only when its list is.
    assert missing(ROWS, tmp_path) == [CLOSED, HAND, MBERT]
    (tmp_path / "models" / "mbert" / "complete.json").touch()
    assert missing(ROWS, tmp_path) == [CLOSED, HAND]
    assert missing_message([FREE, MBERT], tmp_path) == ""


def test_licences_with_conditions_come_first():
    lines = licence_summary([FREE, FREE, CLOSED, HAND]).splitlines()
    assert lines[0].split() == ["licence", "files", "size"]
    assert lines[1].split("  ")[0] == "CC-BY-NC-4.0"
    assert lines[1].endswith("NON-COMMERCIAL use only")
    assert lines[2].split() == ["CC-BY-SA-4.0", "2", "3.0", "MB"]
    assert lines[3].endswith("1 by hand")
