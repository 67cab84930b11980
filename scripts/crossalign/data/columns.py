"""Which tables can be read, and which columns a task wants of them. Imported while the workflow is planned: light."""

from pathlib import PurePath

# How a file is read, by the end of its name; behind it may stand .gz.
FORMATS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".csv": "csv", ".tsv": "csv"}
FORMAT_NAMES = "parquet, JSON lines, CSV or TSV"
# What a task reads, and the columns that hold it unless others are named. A column `id` is read where there is one.
COLUMNS = {
    "ner": {"tokens": "tokens", "tags": "ner_tags"},
    "pos": {"tokens": "tokens", "tags": "upos"},
    "nli": {"premise": "premise", "hypothesis": "hypothesis", "label": "label"},
    "qa": {"question": "question", "context": "context", "answers": "answers"},
}
LABELLED = {"ner": "tags", "pos": "tags", "nli": "label"}


def format_of(name: str) -> str | None:
    """Which of `datasets`' readers takes a file; None for a file of another kind."""
    return FORMATS.get(PurePath(name.removesuffix(".gz")).suffix)
