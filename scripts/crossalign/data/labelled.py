"""Labelled tables in, prepared sets out: parquet, JSON lines or CSV, read by `datasets` and mapped by their columns.

Nothing is fetched and no code of a data set runs: the files are there, and their columns are named.
"""

import csv
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from crossalign.data.columns import COLUMNS, FORMAT_NAMES, LABELLED, format_of
from crossalign.data.conllu import NO_HEAD, RENAMED_TAGS, UPOS, Sentence, write_sentences
from crossalign.data.lines import shown, write_rows
from crossalign.data.ner import finish_sentence, is_invisible
from crossalign.data.qa import prepare_questions
from crossalign.data.report import Names, Report
from crossalign.runtime.errors import UserError

# What the hub's sets have where annotators did not agree or a test set is secret.
NO_LABEL = (None, -1, "-1", "-", "")
Row = dict[str, Any]


def listed_files(source: Path) -> list[Path]:
    """The files behind a source: itself, or those that a download has listed in its `complete.json`."""
    if source.name != "complete.json":
        return [source]
    try:
        return [source.parent / row["file"] for row in json.loads(source.read_text(encoding="utf-8"))["files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{source}: not the list of a finished download ({error}); delete it") from error


class Table:
    """The rows of some files, with the columns that a task reads."""

    def __init__(self, files: list[Path], task: str, columns: dict[str, str], folder: Path) -> None:
        """`datasets` writes what it reads to `folder`."""
        if unknown := sorted(set(columns) - {*COLUMNS[task], "id"}):
            raise UserError(
                f"columns: '{unknown[0]}' is nothing that {task} reads; it reads {', '.join(COLUMNS[task])}"
            )
        self.name = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        self.columns = COLUMNS[task] | columns
        self.rows = self._read(files, folder)
        held = self.rows.column_names
        if "id" in held:
            self.columns = {"id": "id"} | self.columns
        for use, column in self.columns.items():
            if column not in held:
                raise UserError(f"{self.name}: no column '{column}' for the {use}; the columns are {', '.join(held)}")
        self.rows = self.rows.select_columns(list(dict.fromkeys(self.columns.values())))

    def _read(self, files: list[Path], folder: Path) -> Any:
        from datasets import Dataset, disable_progress_bars, logging
        from datasets.exceptions import DatasetsError

        disable_progress_bars()
        # What it would say of errors is said below.
        logging.set_verbosity(logging.CRITICAL)
        kinds = {format_of(file.name) for file in files}
        if None in kinds or len(kinds) > 1:
            raise UserError(f"{self.name}: a set is made of files of one kind: {FORMAT_NAMES}")
        for file in files:
            if not file.is_file():
                raise UserError(f"{file}: no such file")
        # The library takes names for patterns; these have no letter that means something else.
        links = [folder / f"{number:05}{_end(file)}" for number, file in enumerate(files)]
        for link, file in zip(links, files, strict=True):
            link.symlink_to(file.resolve())
        options: dict[str, Any] = {"cache_dir": str(folder / "cache")}
        if kinds == {"csv"}:
            # As text: pandas would make a number of 007, and nothing of the words null and NA.
            options |= {"converters": dict.fromkeys(["id", *self.columns.values()], str), "na_filter": False}
            if _end(files[0]).startswith(".tsv"):
                options |= {"sep": "\t", "quoting": csv.QUOTE_NONE}
        reader = {"parquet": Dataset.from_parquet, "json": Dataset.from_json, "csv": Dataset.from_csv}[kinds.pop()]
        try:
            # Of files without rows it makes errors.
            if links := [link for link in links if _has_rows(link)]:
                return reader(list(map(str, links)), **options)
        except (DatasetsError, ValueError, OSError) as error:
            cause = str(error.__cause__ or error).strip().split("\n")[0]
            raise UserError(f"{self.name}: cannot be read: {cause}") from error
        raise UserError(f"{self.name}: nothing to keep (no rows in it)")

    def label_names(self, use: str) -> list[str] | None:
        """The names of labels that are numbers, where the files tell them."""
        feature = self.rows.features[self.columns[use]]
        return getattr(getattr(feature, "feature", feature), "names", None)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        """Numbered rows, each by what its columns are for."""
        number = 0
        for batch in self.rows.iter(batch_size=1000):
            for values in zip(*(batch[column] for column in self.columns.values()), strict=True):
                number += 1
                yield number, dict(zip(self.columns, values, strict=True))

    def wrong(self, number: int, what: str) -> UserError:
        """The error for a row."""
        return UserError(f"{self.name}, row {number}: {what}")

    def text(self, number: int, row: Row, use: str) -> str:
        """A cell that must hold text."""
        if not isinstance(row[use], str):
            raise self.wrong(number, f"{shown(str(row[use]))} in column '{self.columns[use]}', where text should stand")
        return row[use]

    def texts(self, number: int, row: Row, use: str) -> list[Any]:
        """A cell that holds a list; a text, as in CSV, is split at its spaces."""
        value = row[use].split() if isinstance(row[use], str) else row[use]
        if not isinstance(value, list):
            column = self.columns[use]
            raise self.wrong(number, f"{shown(str(value))} in column '{column}', where a list should stand")
        return value


def _end(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).suffix + ".gz" * (file.suffix == ".gz")


def _has_rows(file: Path) -> bool:
    if file.suffix != ".parquet":
        return file.stat().st_size > 0
    from pyarrow.parquet import read_metadata

    return read_metadata(file).num_rows > 0


class Labels:
    """Labels as the project writes them: by the table's names, or by those given, a list or {theirs: ours}."""

    def __init__(self, table: Table, use: str, given: list[str] | dict[str, str] | None) -> None:
        self.table, self.column = table, table.columns[use]
        # Where the table names its numbers, a list only says which names may occur.
        self.names = table.label_names(use) or (given if isinstance(given, list) else None)
        self.renamed = given if isinstance(given, dict) else None
        self.listed = frozenset(given) if isinstance(given, list) else None
        self.known: dict[Any, str] = {}

    def of(self, number: int, value: Any) -> str:
        """The label of a row's value."""
        if value not in self.known:
            self.known[value] = self._find(number, value)
        return self.known[value]

    def _find(self, number: int, value: Any) -> str:
        label = str(value)
        if isinstance(value, int) or (self.listed and label not in self.listed and label.isdecimal()):
            if self.names is None and self.renamed is None:
                raise self.table.wrong(
                    number, f"column '{self.column}' has numbers without names; list the names under `labels`, 0 first"
                )
            if self.names is not None:
                if not 0 <= int(value) < len(self.names):
                    raise self._unknown(number, label, self.names)
                label = self.names[int(value)]
        if self.renamed is not None:
            if label not in self.renamed:
                raise self._unknown(number, label, self.renamed)
            return self.renamed[label]
        if self.listed and label not in self.listed:
            raise self._unknown(number, label, sorted(self.listed))
        return label

    def _unknown(self, number: int, label: str, allowed: Any) -> UserError:
        return self.table.wrong(number, f"label {shown(label)} is none of {', '.join(allowed)}")


def prepare_table(
    files: list[Path],
    task: str,
    columns: dict[str, str],
    labels: list[str] | dict[str, str] | None,
    stem: str,
    out: IO[str],
    report: Report,
) -> None:
    """Write the prepared set of a task; items without an identifier are called `<stem>-<row>`."""
    if labels is not None and task not in LABELLED:
        raise UserError(f"labels: {task} has no labels")
    with tempfile.TemporaryDirectory(prefix="labelled-") as folder:
        table = Table(files, task, columns, Path(folder))
        given = Labels(table, LABELLED[task], labels) if task in LABELLED else None
        if task == "pos":
            write_sentences(_tagged(table, given, stem, report), out)
        elif task == "qa":
            write_rows(prepare_questions(_questions(table, stem), report), out)
        else:
            write_rows((_entities if task == "ner" else _pairs)(table, given, stem, report), out)


def _words(table: Table, labels: Labels, number: int, row: Row) -> tuple[list[str], list[str]]:
    tokens, tags = table.texts(number, row, "tokens"), table.texts(number, row, "tags")
    if len(tokens) != len(tags):
        raise table.wrong(number, f"{len(tokens)} tokens, but {len(tags)} tags")
    if not all(isinstance(token, str) for token in tokens):
        raise table.wrong(number, f"a token in column '{table.columns['tokens']}' that is no text")
    return tokens, [labels.of(number, tag) for tag in tags]


def _entities(table: Table, labels: Labels, stem: str, report: Report) -> Iterator[Row]:
    names, allowed = Names(report), set()
    for number, row in table:
        tokens, tags = _words(table, labels, number, row)
        for tag in set(tags) - allowed:
            if not re.fullmatch(r"O|[BI]-.+", tag):
                what = (
                    f"{shown(tag)} is no tag of entities (O, B-TYPE or I-TYPE); say under `labels` what it stands for"
                )
                raise table.wrong(number, what)
            allowed.add(tag)
        for sentence in finish_sentence(tokens, tags, stem, report):
            yield sentence | {"id": names.take(str(row.get("id", sentence["id"])))}
    report.facts["tags"] = sorted(allowed, key=lambda tag: (tag != "O", tag[2:], tag))


def _tagged(table: Table, labels: Labels, stem: str, report: Report) -> Iterator[Sentence]:
    names = Names(report)
    for number, row in table:
        report.read += 1
        tokens, tags = _words(table, labels, number, row)
        words = [
            (" ".join(token.split()), RENAMED_TAGS.get(tag, tag))
            for token, tag in zip(tokens, tags, strict=True)
            if not is_invisible(token)
        ]
        if bad := next((tag for _, tag in words if tag not in UPOS), None):
            what = f"{shown(bad)} is none of the 17 universal tags; say under `labels` what it stands for"
            raise table.wrong(number, what)
        report.repair("token without visible characters removed", len(tokens) - len(words))
        if not words:
            report.drop("no token left")
            continue
        report.kept += 1
        report.counts["words"] += len(words)
        forms, upos = map(list, zip(*words, strict=True))
        name = names.take(" ".join(str(row.get("id", f"{stem}-{number}")).split()))
        yield Sentence(name, None, forms, upos, [NO_HEAD] * len(forms), ["_"] * len(forms))


def _pairs(table: Table, labels: Labels, stem: str, report: Report) -> Iterator[Row]:
    names = Names(report)
    for number, row in table:
        report.read += 1
        if row["label"] in NO_LABEL:
            report.drop("no label")
            continue
        texts = {use: table.text(number, row, use) for use in ("premise", "hypothesis")}
        report.counts["pairs_with_empty_sentence"] += not all(map(str.strip, texts.values()))
        label = labels.of(number, row["label"])
        report.counts[f"label {label}"] += 1
        report.kept += 1
        yield {"id": names.take(str(row.get("id", f"{stem}-{number}"))), **texts, "label": label}


def _questions(table: Table, stem: str) -> Iterator[Row]:
    for number, row in table:
        texts = {use: table.text(number, row, use) for use in ("question", "context")}
        answers = row["answers"]
        # A column of {text: [...], answer_start: [...]}, or of [{text, answer_start}, ...].
        try:
            if isinstance(answers, dict):
                pairs = list(zip(answers["text"], answers["answer_start"], strict=True))
            else:
                pairs = [(answer["text"], answer["answer_start"]) for answer in answers]
            if not all(isinstance(text, str) and isinstance(start, int) for text, start in pairs):
                raise TypeError
        except (KeyError, TypeError, ValueError):
            column = table.columns["answers"]
            what = f"{shown(str(answers))} in column '{column}', where text and answer_start should stand"
            raise table.wrong(number, what) from None
        yield {"id": str(row.get("id", f"{stem}-{number}")), **texts, "answers": pairs, "is_impossible": False}
