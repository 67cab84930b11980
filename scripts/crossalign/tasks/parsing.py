"""Dependency parsing: a head and a relation for every word, decoded as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossalign.analysis.metrics import attachment
from crossalign.engine.batches import IGNORE, Field
from crossalign.engine.tokens import Specials, word_pieces
from crossalign.engine.trees import decode_trees
from crossalign.tasks.base import Example, Examples, Record, Records, Task, mean_loss
from crossalign.tasks.records import read_trees
from crossalign.tasks.tagging import make_example, windows

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor, nn

    from crossalign.tasks.base import Batch, Outputs

    Tree = tuple[list[int], list[int]]

# A word beyond the model's length has no predicted head or relation.
NONE = -1
# Most numbers in an intermediate result of prediction.
LARGEST = 1 << 25


class ParsingTask(Task):
    """Trees. A prediction is a pair of lists: heads (0 is the root) and numbers of relations.

    A sentence that is too long is cut at a word boundary in training and in evaluation, because a tree cannot be put
    together from windows; the words beyond count as errors and `cut_words` tells how many there are.
    """

    name = "parsing"
    metric = "LAS"
    fields = {"word_starts": Field(0, "words"), "heads": Field(IGNORE, "words"), "labels": Field(IGNORE, "words")}
    counts = {
        "UAS": lambda row: (row["right"][0], len(row["heads"])),
        "LAS": lambda row: (row["right"][1], len(row["heads"])),
    }

    def read(self, path: str | Path) -> list[Record]:
        return read_trees(path, parsed=True)

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        return sorted({relation for record in records for relation in record["relations"]})

    def examples(
        self, records: Records, tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        specials = Specials.of(tokenizer)
        room = specials.room(max_length)
        split = word_pieces(tokenizer, (record["words"] for record in records), room)
        examples = []
        for index, record in enumerate(records):
            pieces = split(record["words"])
            for window in windows([len(piece) for piece in pieces], room, training=True):
                kept = window[2]
                example = make_example(specials, pieces, *window, last=self.causal)
                example["heads"] = [head if head <= kept else IGNORE for head in record["heads"][:kept]]
                # The relation is learnt at the gold head; where that is cut off there is nothing to learn.
                example["labels"] = [
                    self.numbers.get(relation, IGNORE) if head <= kept else IGNORE
                    for relation, head in zip(record["relations"][:kept], record["heads"], strict=False)
                ]
                examples.append(example | {"record": index, "cut": len(pieces) - kept})
        return examples

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        from crossalign.engine.heads import BiaffineHead

        return BiaffineHead(hidden, len(self.labels), dropout)

    def loss(self, head: nn.Module, states: Tensor, batch: Batch) -> Tensor:
        arcs, dependents, nodes = head(states, batch["word_starts"], batch["word_mask"])
        labels = head.labels_at(dependents, nodes, batch["heads"].clamp(min=0))
        return mean_loss(arcs, batch["heads"]) + mean_loss(labels, batch["labels"])

    def predict(self, head: nn.Module, states: Tensor, batch: Batch) -> Batch:
        """For every word and head the logarithm of arc probability times that of the best relation, and which it is."""
        import torch

        from crossalign.engine.heads import full_precision

        kind = torch.uint8 if len(self.labels) <= 256 else torch.int16
        with full_precision(states):
            arcs, dependents, nodes = head(states, batch["word_starts"], batch["word_mask"])
            # Between the two products stand words x labels x neurons; a few sentences at a time keep that small.
            rows = max(1, LARGEST // max(1, dependents[0].numel() * len(self.labels)))
            best, which = [], []
            for some, others in zip(dependents.split(rows), nodes.split(rows), strict=True):
                labels = head.labels_everywhere(some, others)
                score, label = labels.max(dim=-1)
                best.append(score - labels.logsumexp(dim=-1))
                which.append(label.to(kind))
            return {"weights": arcs.log_softmax(dim=-1) + torch.cat(best), "labels": torch.cat(which)}

    def decode(self, examples: Examples, records: Records, outputs: Outputs) -> list[Tree]:
        predictions = [([NONE] * len(record["words"]), [NONE] * len(record["words"])) for record in records]
        counts = [len(example["word_starts"]) for example in examples]
        weights = [
            np.asarray(output["weights"])[:count, : count + 1] for output, count in zip(outputs, counts, strict=True)
        ]
        for example, output, heads in zip(examples, outputs, decode_trees(weights), strict=True):
            count = len(heads)
            labels = np.asarray(output["labels"])[np.arange(count), heads]
            predictions[example["record"]][0][:count] = heads.tolist()
            predictions[example["record"]][1][:count] = labels.tolist()
        return predictions

    def score(self, records: Records, predictions: Sequence[Tree]) -> dict[str, float]:
        gold_heads = np.array([head for record in records for head in record["heads"]], dtype=np.int64)
        relations = (relation for record in records for relation in record["relations"])
        gold_labels = np.array([self.numbers.get(relation, IGNORE) for relation in relations], dtype=np.int64)
        heads = np.array([head for heads, _ in predictions for head in heads], dtype=np.int64)
        labels = np.array([label for _, labels in predictions for label in labels], dtype=np.int64)
        return {
            **attachment(gold_heads, gold_labels, heads, labels),
            "n": len(records),
            "words": len(heads),
            "cut_words": int((heads == NONE).sum()),
            "unseen_labels": int((gold_labels == IGNORE).sum()),
        }

    def details(self, records: Records, predictions: Sequence[Tree]) -> list[dict[str, Any]]:
        rows = []
        for record, (heads, labels) in zip(records, predictions, strict=True):
            gold = zip(record["heads"], record["relations"], strict=True)
            right = [
                self.numbers.get(relation) == label
                for (place, relation), head, label in zip(gold, heads, labels, strict=True)
                if place == head
            ]
            rows.append({"heads": heads, "labels": labels, "right": [len(right), sum(right)]})
        return rows
