"""Named entity recognition."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crossalign.analysis.metrics import EntityCounts, f1_scores, token_counts
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Record, Records
from crossalign.tasks.records import read_json
from crossalign.tasks.tagging import TaggingTask


class NerTask(TaggingTask):
    """Named entities in IOB2."""

    name = "ner"
    metric = "F1"
    words_key, tags_key = "tokens", "tags"
    counts = {
        "F1": lambda row: row["entities"],
        "precision": lambda row: row["entities"][:2],
        "recall": lambda row: row["entities"][::2],
        "token_F1": lambda row: row["tokens"],
        "token_precision": lambda row: row["tokens"][:2],
        "token_recall": lambda row: row["tokens"][::2],
    }

    def read(self, path: str | Path) -> list[Record]:
        def check(record: Record, where: str) -> None:
            if not record["tokens"]:
                raise UserError(f"{where}: a sentence without words")
            if len(record["tokens"]) != len(record["tags"]):
                raise UserError(f"{where}: {len(record['tokens'])} tokens but {len(record['tags'])} tags")
            bad = [tag for tag in record["tags"] if tag != "O" and not str(tag).startswith(("B-", "I-"))]
            if bad:
                raise UserError(f"{where}: '{bad[0]}' is no IOB2 tag (O, B-TYPE or I-TYPE)")

        return read_json(path, {"id": str, "tokens": list, "tags": list}, "NER", check)

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        return ["O", *(label for label in super().labels_from(records) if label != "O")]

    def score(self, records: Records, predictions: Sequence[list[int]]) -> dict[str, float]:
        gold, guess = self._tags(records, predictions)
        tokens = f1_scores(*token_counts(gold, guess).sum(axis=0))
        by_token = {f"token_{name}": value for name, value in tokens.items()}
        return {**EntityCounts(gold, guess).scores(), **by_token, **self.sizes(records)}

    def details(self, records: Records, predictions: Sequence[list[int]]) -> list[dict[str, Any]]:
        gold, guess = self._tags(records, predictions)
        counts = EntityCounts(gold, guess).by_sentence.tolist(), token_counts(gold, guess).tolist()
        return [
            {"tags": list(tags), "entities": entities, "tokens": tokens}
            for tags, entities, tokens in zip(predictions, *counts, strict=True)
        ]

    def _tags(self, records: Records, predictions: Sequence[list[int]]) -> tuple[list, list]:
        return [record["tags"] for record in records], [[self.labels[tag] for tag in tags] for tags in predictions]
