"""The registers agree with config and manifest; checksums; the lock file."""

import csv
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from crossalign.data.archive import is_archive
from crossalign.fetch.checksums import Expected, WrongContent, check, measure, parse_checksum, parse_sums
from crossalign.fetch.lock import COLUMNS, Locked, read_lock, record
from crossalign.fetch.register import Dataset, Model, read_datasets, read_models
from crossalign.runtime.errors import UserError

LANGUAGE_COLUMNS = ["code", "name", "script", "family", "word_order", "note"]
COMMIT = re.compile(r"[0-9a-f]{40}")
REVISION = re.compile(r"[0-9a-f]{40}|main|refs/pr/[0-9]+")
LICENCE = re.compile(r"[A-Za-z0-9.-]+( (AND|OR) [A-Za-z0-9.-]+)*( \([A-Za-z0-9. -]+\))?")


UNSEEN = ["fo", "xmf", "pcm", "gsw", "bm", "wo", "qaf", "mt", "bxr", "mhr", "myv", "olo", "ug", "sd", "ckb"]


def rows_of(path: Path, delimiter: str = "\t") -> list[dict[str, str]]:
    """The rows of a table; cells without spaces around them."""
    with path.open(encoding="utf-8", newline="") as stream:
        quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        rows = list(csv.DictReader(stream, delimiter=delimiter, quoting=quoting, strict=True))
    for number, row in enumerate(rows, start=2):
        assert None not in row and None not in row.values(), f"{path.name}, line {number}: too many or too few cells"
    return rows


@pytest.fixture(scope="module")
def datasets(root: Path) -> list[Dataset]:
    """The reader itself refuses wrong columns, repeated keys, bad paths, addresses, checksums and numbers."""
    return list(read_datasets(root / "resources/datasets.tsv").values())


@pytest.fixture(scope="module")
def models(root: Path) -> dict[str, Model]:
    return read_models(root / "resources/models.tsv")


@pytest.fixture(scope="module")
def languages(root: Path) -> dict[str, dict[str, str]]:
    rows = rows_of(root / "resources/languages.tsv")
    assert list(rows[0]) == LANGUAGE_COLUMNS
    assert len({row["code"] for row in rows}) == len(rows)
    return {row["code"]: row for row in rows}


def test_dataset_cells(root: Path, datasets: list[Dataset]) -> None:
    for name in ("datasets.tsv", "models.tsv", "languages.tsv"):
        for row in rows_of(root / "resources" / name):
            assert all(cell == cell.strip() for cell in row.values()), f"{name}: space around a cell in {row}"
    for row in datasets:
        assert row.use, row.path
        assert re.match("https://|hub://datasets/|text:https://|manual:https://", row.url), row.url
        assert not row.mirror or row.mirror.startswith(("https://", "wheel:")), row.mirror
        assert row.bytes != 0, row.path
        assert LICENCE.fullmatch(row.licence), row.path


def test_what_may_change_is_pinned(datasets: list[Dataset]) -> None:
    """Hub files and raw repository files are named by a commit or a release tag, never by a branch."""
    for row in datasets:
        if row.url.startswith("hub://"):
            assert COMMIT.fullmatch(row.version), row.path
        for address in filter(None, (row.url, row.mirror)):
            if address.startswith("https://raw.githubusercontent.com/"):
                at = address.split("/")[5]
                assert COMMIT.fullmatch(at) or re.fullmatch(r"r2\.[0-9]+", at), address
                assert row.version in (at, "1.1"), row.path


def test_running_text_is_pinned(datasets: list[Dataset]) -> None:
    """Archives and files of running text are those of a commit; the row says which."""
    at = (
        r"https://(?:github.com/[\w.-]+/[\w.-]+/archive|raw.githubusercontent.com/[\w.-]+/[\w.-]+)/([0-9a-f]{40})[./].+"
    )
    rows = [row for row in datasets if row.texts()]
    assert len(rows) >= 20
    for row in rows:
        assert row.path.startswith("text/open/"), row.path
        named = [re.fullmatch(at, text.url) for text in row.texts()]
        assert all(named), row.path
        assert row.version == named[0][1], row.path
        # Of an archive of many files some are named, of a single file none.
        for text in row.texts():
            assert (text.files == ("*",)) != is_archive(text.path), row.path


def test_non_commercial_data_say_so(datasets: list[Dataset]) -> None:
    marked = {row.path for row in datasets if "NC" in row.licence}
    # Readers look for the two letters, so no other name may hold them (OANC would).
    assert marked == {row.path for row in datasets if re.search(r"\bNC\b", row.licence)}
    for path in ("nli/XNLI-1.0.zip", "nli/XNLI-15way.zip", "ner/conll2003/test.txt", "ud/ru_gsd/train.conllu"):
        assert path in marked
    for path in ("ud/en_ewt/train.conllu", "nli/multinli_1.0.zip", "text/wikipedia/wo.parquet"):
        assert path not in marked


def test_manual_rows_explain_themselves(datasets: list[Dataset]) -> None:
    manual = {row.path: row for row in datasets if row.url.startswith("manual:")}
    folders = {PurePosixPath(path).parent.name for path in manual}
    assert folders == {"bible", "conll2003", "en_lexnorm", "narabizi"}
    for row in manual.values():
        assert not row.mirror
        assert ";" in row.use, f"{row.path}: says what it is for, but not what to do"


def test_models(root: Path, models: dict[str, Model], datasets: list[Dataset]) -> None:
    for name, row in models.items():
        if row.hub.startswith("manual:"):
            # Not on the hub: the text names the registered file that the model is made from.
            assert any(file.path in row.use for file in datasets), name
        else:
            assert REVISION.fullmatch(row.revision), name
        assert LICENCE.fullmatch(row.licence) and row.use, name
        assert row.bytes != 0 and row.parameters != 0, name
    printed = [row for row in rows_of(root / "resources/papers/anc/table2.csv", ",") if not row["flag"]]
    assert len(printed) == 43
    for row in printed:
        model = models[row["model"].lower().replace("xlm-roberta", "xlmr")]
        registered = getattr(model, row["field"].removesuffix("_per_layer"))
        if row["field"] == "parameters":
            assert registered == pytest.approx(int(row["value"]), rel=0.03), row
        else:
            assert str(registered).upper() == row["value"], row


def test_languages(root: Path, languages: dict[str, dict[str, str]]) -> None:
    assert set(languages) >= set(UNSEEN)
    for code, row in languages.items():
        assert row["name"] and row["family"], code
        assert re.fullmatch(r"[A-Z][a-z]+", row["script"]), code
        assert re.fullmatch(r"(SVO|SOV|VSO)(/V2)?", row["word_order"]), code
        assert ("unseen" in row["note"]) == (code in UNSEEN), code
    for printed in rows_of(root / "resources/papers/adjust/table1.csv", ","):
        if printed["field"] in ("script", "word_order"):
            assert languages[printed["language"]][printed["field"]] == printed["value"]
    for printed in rows_of(root / "resources/papers/talk/table3.csv", ","):
        code = printed["code_in_ud_or_wikiann"].replace("nrz", "qaf")
        assert (languages[code]["name"], languages[code]["script"]) == (printed["language"], printed["script"])


@pytest.mark.parametrize("paper", ["adjust", "align-predict", "anc", "talk"])
def test_printed_numbers_are_whole(root: Path, paper: str) -> None:
    folder = root / "resources/papers" / paper
    assert (folder / "NOTES.md").is_file() and (folder / "claims.csv").is_file()
    for path in sorted(folder.glob("*.csv")):
        header = path.read_text(encoding="utf-8").splitlines()[0].split(",")
        assert len(set(header)) == len(header), path.name
        rows_of(path, ",")


def test_agreement_with_the_manifest(shared: Path, datasets: list[Dataset]) -> None:
    known = {row["url"]: row for row in rows_of(shared / "manifest/ud.tsv")}
    for row in rows_of(shared / "manifest/other.tsv"):
        place = (row["github_repo"], row["commit"], row["path"])
        if "-" not in place:
            known["/".join(("https://raw.githubusercontent.com", *place))] = row
    compared = 0
    for row in datasets:
        for address in {row.url, row.mirror} & set(known):
            record = known[address]
            kind, _, digest = (row.checksum or "").partition(":")
            recorded = record["sha256"] if kind == "sha256" else record["git_blob_sha1"]
            assert recorded in ("-", digest), row.path
            compared += recorded != "-"
            assert record["bytes"] in ("-", str(row.bytes)), row.path
    assert compared >= 70


def test_printed_numbers_are_unchanged(root: Path, shared: Path) -> None:
    source = shared / "papers/published"
    if not source.is_dir():
        pytest.skip(f"no printed numbers at {source}")
    for path in sorted(source.glob("*/*.csv")):
        copy = root / "resources/papers" / path.relative_to(source)
        if path.name != "claims.csv":
            assert copy.read_bytes() == path.read_bytes(), copy
            continue
        # Claims have been added and worded anew; what was printed stays.
        ours, theirs = (printed_amounts(each) for each in (copy, path))
        assert {name: ours.get(name) for name in theirs} == theirs, copy


def printed_amounts(path: Path) -> dict[str, tuple[float, str]]:
    """The claims of a file that print a number, which it is, and its unit."""
    rows = [row for row in rows_of(path, ",") if re.fullmatch(r"-?[0-9]+([.][0-9]+)?", row["value"])]
    return {row["id"]: (float(row["value"]), row["unit"]) for row in rows}


HEX = "0123456789abcdef" * 4
ROW = Locked("b/x.txt", "v1", 3, HEX, "https://example.org/x")


def test_check_names_what_differs(tmp_path):
    (tmp_path / "f").write_bytes(b"what is up, doc?")
    measured = measure(tmp_path / "f", with_git=True)
    assert measured.git == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"  # what git prints
    check(measured, Expected(16, (f"sha256:{measured.sha256}", f"git:{measured.git}")))
    with pytest.raises(WrongContent, match="expected 4 bytes, got 16"):
        check(measured, Expected(4))
    with pytest.raises(WrongContent, match=f"expected git:{'0' * 40}, got git:{measured.git}"):
        check(measured, Expected(16, (f"sha256:{measured.sha256}", "git:" + "0" * 40)))


def test_checksums_and_sums_are_read():
    assert parse_checksum(f"sha256:{HEX.upper()}") == f"sha256:{HEX}"
    assert parse_sums(f"{HEX}  a/b c\n\n{HEX} *./d\n", "SUMS") == {"a/b c": HEX, "d": HEX}
    with pytest.raises(UserError, match="SUMS, line 2: expected"):
        parse_sums(f"{HEX}  a\nnonsense\n", "SUMS")
    with pytest.raises(UserError, match="line 2: a is listed twice"):
        parse_sums(f"{HEX}  a\n{HEX[::-1]}  a\n", "SUMS")


def test_rows_are_sorted_and_survive(tmp_path):
    lock = tmp_path / "deep" / "lock.tsv"
    assert read_lock(lock) == {}
    record(lock, [ROW])
    record(lock, [Locked("a", "v", 1, HEX, "https://example.org/a"), ROW])
    before = lock.stat()
    record(lock, [ROW])
    assert lock.stat().st_ino == before.st_ino  # the same rows leave the file alone
    lines = lock.read_text().splitlines()
    assert lines[0].split("\t") == list(COLUMNS)
    assert [line.split("\t")[0] for line in lines[1:]] == ["a", "b/x.txt"]
    assert read_lock(lock)["b/x.txt"] == ROW
    assert [path.name for path in lock.parent.iterdir()] == ["lock.tsv"]


def test_changed_file_is_an_error_unless_it_is_another_version(tmp_path):
    lock = tmp_path / "lock.tsv"
    record(lock, [ROW])
    with pytest.raises(UserError, match=r"delete the row of b/x.txt from .*lock.tsv and run again") as error:
        record(lock, [Locked("b/x.txt", "v1", 4, HEX[::-1], ROW.url)])
    assert HEX in str(error.value)
    assert HEX[::-1] in str(error.value)
    assert read_lock(lock) == {"b/x.txt": ROW}
    new = Locked("b/x.txt", "v2", 4, HEX[::-1], ROW.url)
    record(lock, [new])
    assert read_lock(lock) == {"b/x.txt": new}


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (["path", "sha256"], [], "line 1: missing column version, bytes, url"),
        (COLUMNS, [["<<<<<<< HEAD"]], "line 2: 1 fields, but the header has 5"),
        (COLUMNS, [["a", "v", "x", HEX, "u"]], "line 2: not a row"),
        (COLUMNS, [["a", "v", "1", "abc", "u"]], "line 2: not a row"),
        (COLUMNS, [["a", "v", "1", HEX, "u"], ["a", "v", "2", HEX, "u"]], "line 3: a is listed twice"),
    ],
)
def test_broken_lock_file(tmp_path, header, rows, message):
    lock = tmp_path / "lock.tsv"
    lock.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]))
    with pytest.raises(UserError, match=message):
        read_lock(lock)


def test_processes_at_once_lose_no_row(tmp_path, root):
    lock = tmp_path / "lock.tsv"
    code = (
        "import sys; from crossalign.fetch.lock import Locked, record\n"
        "for n in range(40): record(sys.argv[1], [Locked(f'{sys.argv[2]}/{n:02}', 'v', n, '0' * 64, 'https://e.org')])"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(lock), f"process{number}"], cwd=root / "scripts")
        for number in range(4)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    assert sorted(read_lock(lock)) == [f"process{number}/{row:02}" for number in range(4) for row in range(40)]
    assert [path.name for path in tmp_path.iterdir()] == ["lock.tsv"]
