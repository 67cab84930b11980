"""POS tagging and NER: one label per word, read off its first sub-word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossalign.analysis.metrics import EntityCounts, f1_scores, percent, token_counts
from crossalign.data.conllu import UPOS as ALL_UPOS
from crossalign.engine.batches import IGNORE, Field
from crossalign.engine.tokens import Specials, word_pieces
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Example, Record, Task, group_by_record, sorted_labels
from crossalign.tasks.records import read_json, read_trees

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from torch import nn

UPOS = tuple(sorted(ALL_UPOS - {"_"}))


class TaggingTask(Task):
    """Labels for words. A prediction is a list of label numbers."""

    fields = {"word_starts": Field(0, "words"), "labels": Field(IGNORE, "words")}
    words_key: str
    tags_key: str

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        return sorted_labels(tag for record in records for tag in record[self.tags_key])

    def examples(
        self, records: Sequence[Record], tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        specials = Specials.of(tokenizer)
        room = specials.room(max_length)
        table = word_pieces(tokenizer, (record[self.words_key] for record in records), room)
        numbers = {label: number for number, label in enumerate(self.labels)}
        examples = []
        for index, record in enumerate(records):
            pieces = [table[word] for word in record[self.words_key]]
            labels = [numbers.get(tag, IGNORE) for tag in record[self.tags_key]]
            for window in windows([len(piece) for piece in pieces], room, training):
                example = make_example(specials, pieces, *window)
                example["labels"] = labels[window[1] : window[2]]
                example["record"] = index
                example["cut"] = len(pieces) - window[2] if training else 0
                examples.append(example)
        return examples

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        from crossalign.engine.heads import TaggingHead

        return TaggingHead(hidden, len(self.labels), dropout)

    def loss(self, head: nn.Module, hidden_states: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        from crossalign.engine.heads import mean_cross_entropy

        return mean_cross_entropy(head(hidden_states, batch["word_starts"]), batch["labels"])

    def predict(
        self, head: nn.Module, hidden_states: torch.Tensor, batch: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        return {"labels": head(hidden_states, batch["word_starts"]).argmax(dim=-1)}

    def decode(
        self, examples: Sequence[Example], records: Sequence[Record], outputs: Sequence[dict[str, np.ndarray]]
    ) -> list[list[int]]:
        predictions = []
        for numbers in group_by_record(examples, len(records)):
            tags: list[int] = []
            for number in numbers:
                tags += np.asarray(outputs[number]["labels"])[: len(examples[number]["word_starts"])].tolist()
            predictions.append(tags)
        return predictions

    def unseen(self, records: Sequence[Record]) -> int:
        """How many words have a gold label that the model cannot give; each is an error."""
        known = set(self.labels)
        return sum(tag not in known for record in records for tag in record[self.tags_key])


class PosTask(TaggingTask):
    """Universal part-of-speech tags; the set is fixed."""

    name = "pos"
    metric = selection_metric = "accuracy"
    words_key, tags_key = "words", "upos"

    def __init__(self, labels: Sequence[str] | None = None) -> None:
        super().__init__(UPOS if labels is None else labels)

    def read(self, path: str | Path) -> list[Record]:
        return read_trees(path, parsed=False)

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        return list(UPOS)

    def score(self, records: Sequence[Record], predictions: Sequence[list[int]]) -> dict[str, float]:
        words = sum(len(record["words"]) for record in records)
        return {
            "accuracy": percent(sum(self._right(records, predictions)), words),
            "n": len(records),
            "words": words,
            "unseen_labels": self.unseen(records),
        }

    def details(self, records: Sequence[Record], predictions: Sequence[list[int]]) -> list[dict[str, Any]]:
        right = self._right(records, predictions)
        return [{"tags": list(tags), "right": right[number]} for number, tags in enumerate(predictions)]

    def _right(self, records: Sequence[Record], predictions: Sequence[list[int]]) -> list[int]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        return [
            sum(numbers.get(tag) == guess for tag, guess in zip(record["upos"], tags, strict=True))
            for record, tags in zip(records, predictions, strict=True)
        ]


class NerTask(TaggingTask):
    """Named entities in IOB2."""

    name = "ner"
    metric = selection_metric = "F1"
    words_key, tags_key = "tokens", "tags"

    def read(self, path: str | Path) -> list[Record]:
        records = []
        for where, record in read_json(path, {"id": str, "tokens": list, "tags": list}, "NER"):
            if not record["tokens"]:
                raise UserError(f"{where}: a sentence without words")
            if len(record["tokens"]) != len(record["tags"]):
                raise UserError(f"{where}: {len(record['tokens'])} tokens but {len(record['tags'])} tags")
            bad = [tag for tag in record["tags"] if tag != "O" and not str(tag).startswith(("B-", "I-"))]
            if bad:
                raise UserError(f"{where}: '{bad[0]}' is no IOB2 tag (O, B-TYPE or I-TYPE)")
            records.append(record)
        return records

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        return sorted_labels((tag for record in records for tag in record["tags"]), first="O")

    def score(self, records: Sequence[Record], predictions: Sequence[list[int]]) -> dict[str, float]:
        gold, guess = self._tags(records, predictions)
        tokens = f1_scores(*token_counts(gold, guess).sum(axis=0))
        return {
            **EntityCounts(gold, guess).scores(),
            **{f"token_{name}": value for name, value in tokens.items()},
            "n": len(records),
            "words": sum(len(tags) for tags in gold),
            "unseen_labels": self.unseen(records),
        }

    def details(self, records: Sequence[Record], predictions: Sequence[list[int]]) -> list[dict[str, Any]]:
        gold, guess = self._tags(records, predictions)
        entities = EntityCounts(gold, guess).by_sentence.tolist()
        tokens = token_counts(gold, guess).tolist()
        return [
            {"tags": list(tags), "entities": entities[number], "tokens": tokens[number]}
            for number, tags in enumerate(predictions)
        ]

    def _tags(
        self, records: Sequence[Record], predictions: Sequence[list[int]]
    ) -> tuple[list[list[str]], list[list[str]]]:
        return [record["tags"] for record in records], [[self.labels[tag] for tag in tags] for tags in predictions]


def windows(lengths: list[int], room: int, training: bool) -> list[tuple[int, int, int, int]]:
    """Pieces of a sentence that fit the model: (first word shown, first and end of the words labelled, end of shown).

    A sentence that fits is one window. In training a longer one is cut at a word boundary. Otherwise windows overlap by
    about half, and each word is labelled where it has the more context on its poorer side.
    """
    count = len(lengths)
    if not count:
        return []
    if sum(lengths) <= room:
        return [(0, 0, count, count)]
    ends = np.cumsum(lengths)
    starts = ends - lengths
    spans = [(0, int(np.searchsorted(ends, room, side="right")))]
    while not training and spans[-1][1] < count:
        first, end = spans[-1]
        middle = int(np.searchsorted(starts, (starts[first] + ends[end - 1]) // 2))
        begin = min(max(middle, first + 1), end)
        spans.append((begin, int(np.searchsorted(ends, starts[begin] + room, side="right"))))
    # Labelled words change hands in the middle of the overlap.
    turns = (
        [0] + [(later[0] + earlier[1]) // 2 for earlier, later in zip(spans, spans[1:], strict=False)] + [spans[-1][1]]
    )
    found = [(first, turns[i], turns[i + 1], end) for i, (first, end) in enumerate(spans)]
    return [window for window in found if window[1] < window[2]]


def make_example(specials: Specials, pieces: list[list[int]], first: int, begin: int, stop: int, end: int) -> Example:
    """Tokens of words `first` to `end`, with the places of the words from `begin` to `stop`."""
    ids = [specials.cls]
    places = []
    for piece in pieces[first:end]:
        places.append(len(ids))
        ids += piece
    ids.append(specials.sep)
    return {"input_ids": ids, "word_starts": places[begin - first : stop - first]}
