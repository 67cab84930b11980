"""What POS tagging and NER share: one label per word, read off its first sub-word, or off its last one in decoders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from crossalign.analysis.metrics import percent
from crossalign.engine.batches import IGNORE, Field
from crossalign.engine.tokens import Specials, word_pieces
from crossalign.tasks.base import Example, Examples, Record, Records, Task, group_by_record, mean_loss

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor, nn

    from crossalign.tasks.base import Batch, Outputs


class TaggingTask(Task):
    """Labels for words. A prediction is a list of label numbers. Scored by the share of right labels."""

    fields = {"word_starts": Field(0, "words"), "labels": Field(IGNORE, "words")}
    counts = {"accuracy": lambda row: (row["right"], len(row["tags"]))}
    words_key: str
    tags_key: str

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        if self.fixed_labels is not None:
            return list(self.fixed_labels)
        return sorted({tag for record in records for tag in record[self.tags_key]})

    def examples(
        self, records: Records, tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        specials = Specials.of(tokenizer)
        room = specials.room(max_length)
        split = word_pieces(tokenizer, (record[self.words_key] for record in records), room)
        examples = []
        for index, record in enumerate(records):
            pieces = split(record[self.words_key])
            labels = [self.numbers.get(tag, IGNORE) for tag in record[self.tags_key]]
            for window in windows([len(piece) for piece in pieces], room, training):
                example = make_example(specials, pieces, *window, last=self.causal)
                example["labels"] = labels[window[1] : window[2]]
                examples.append(example | {"record": index, "cut": len(pieces) - window[2] if training else 0})
        return examples

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        from crossalign.engine.heads import TaggingHead

        return TaggingHead(hidden, len(self.labels), dropout)

    def loss(self, head: nn.Module, states: Tensor, batch: Batch) -> Tensor:
        return mean_loss(head(states, batch["word_starts"]), batch["labels"])

    def predict(self, head: nn.Module, states: Tensor, batch: Batch) -> Batch:
        return {"labels": head(states, batch["word_starts"]).argmax(dim=-1)}

    def decode(self, examples: Examples, records: Records, outputs: Outputs) -> list[list[int]]:
        predictions = []
        for numbers in group_by_record(examples, len(records)):
            tags: list[int] = []
            for number in numbers:
                tags += np.asarray(outputs[number]["labels"])[: len(examples[number]["word_starts"])].tolist()
            predictions.append(tags)
        return predictions

    def score(self, records: Records, predictions: Sequence[list[int]]) -> dict[str, float]:
        right = sum(row["right"] for row in self.details(records, predictions))
        sizes = self.sizes(records)
        return {"accuracy": percent(right, sizes["words"]), **sizes}

    def details(self, records: Records, predictions: Sequence[list[int]]) -> list[dict[str, Any]]:
        rows = []
        for record, tags in zip(records, predictions, strict=True):
            gold = (self.numbers.get(tag) for tag in record[self.tags_key])
            rows.append({"tags": list(tags), "right": sum(a == b for a, b in zip(gold, tags, strict=True))})
        return rows

    def sizes(self, records: Records) -> dict[str, int]:
        """Sentences and words, and how many words have a gold label that the model cannot give: each is an error."""
        tags = [tag for record in records for tag in record[self.tags_key]]
        unseen = sum(tag not in self.numbers for tag in tags)
        return {"n": len(records), "words": len(tags), "unseen_labels": unseen}


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
    turns = [0, *((later[0] + earlier[1]) // 2 for earlier, later in pairwise(spans)), spans[-1][1]]
    cuts = [(first, turns[i], turns[i + 1], end) for i, (first, end) in enumerate(spans)]
    return [window for window in cuts if window[1] < window[2]]


def make_example(
    specials: Specials, pieces: list[list[int]], first: int, begin: int, stop: int, end: int, last: bool = False
) -> Example:
    """Tokens of words `first` to `end`, with the places of the words from `begin` to `stop`: of their first sub-words,
    or with `last` of their last ones."""
    ids = list(specials.frame.before)
    places = []
    for piece in pieces[first:end]:
        places.append(len(ids) + (len(piece) - 1 if last else 0))
        ids += piece
    ids += specials.frame.after
    return {"input_ids": ids, "word_starts": places[begin - first : stop - first]}
