"""Natural language inference: one of three labels for a premise and a hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossalign.analysis.metrics import percent
from crossalign.engine.batches import IGNORE, Field
from crossalign.engine.tokens import Specials, text_ids
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Example, Record, Task
from crossalign.tasks.records import read_json

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from torch import nn

LABELS = ("entailment", "neutral", "contradiction")


class NliTask(Task):
    """Pairs of sentences. A prediction is the number of a label."""

    name = "nli"
    metric = selection_metric = "accuracy"
    fields = {"label": Field(IGNORE, "scalar")}

    def __init__(self, labels: Sequence[str] | None = None) -> None:
        super().__init__(LABELS if labels is None else labels)

    def read(self, path: str | Path) -> list[Record]:
        records = []
        for where, record in read_json(path, {"id": str, "premise": str, "hypothesis": str, "label": str}, "NLI"):
            if record["label"] not in LABELS:
                raise UserError(f"{where}: label '{record['label']}' is none of {', '.join(LABELS)}")
            records.append(record)
        return records

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        return list(LABELS)

    def examples(
        self, records: Sequence[Record], tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        """Pairs longer than `max_length` lose the end of their longer sentence, as in the papers; `cut` counts it."""
        specials = Specials.of(tokenizer)
        room = specials.room(max_length, texts=2)
        table = text_ids(tokenizer, chain.from_iterable((r["premise"], r["hypothesis"]) for r in records))
        numbers = {label: number for number, label in enumerate(self.labels)}
        examples = []
        for index, record in enumerate(records):
            premise, hypothesis = table[record["premise"]], table[record["hypothesis"]]
            cut = max(0, len(premise) + len(hypothesis) - room)
            if cut:
                first, second = share(len(premise), len(hypothesis), room)
                premise, hypothesis = premise[:first], hypothesis[:second]
            example = specials.pair(premise, hypothesis)
            example |= {"label": numbers.get(record["label"], IGNORE), "record": index, "cut": cut}
            examples.append(example)
        return examples

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        from crossalign.engine.heads import SequenceHead

        return SequenceHead(hidden, len(self.labels), dropout)

    def loss(self, head: nn.Module, hidden_states: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        from crossalign.engine.heads import mean_cross_entropy

        return mean_cross_entropy(head(hidden_states), batch["label"])

    def predict(
        self, head: nn.Module, hidden_states: torch.Tensor, batch: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        return {"label": head(hidden_states).argmax(dim=-1)}

    def decode(
        self, examples: Sequence[Example], records: Sequence[Record], outputs: Sequence[dict[str, np.ndarray]]
    ) -> list[int]:
        predictions = [-1] * len(records)
        for example, output in zip(examples, outputs, strict=True):
            predictions[example["record"]] = int(output["label"])
        return predictions

    def score(self, records: Sequence[Record], predictions: Sequence[int]) -> dict[str, float]:
        right = sum(row["right"] for row in self.details(records, predictions))
        return {"accuracy": percent(right, len(records)), "n": len(records)}

    def details(self, records: Sequence[Record], predictions: Sequence[int]) -> list[dict[str, Any]]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        return [
            {"label": guess, "right": int(numbers.get(record["label"]) == guess)}
            for record, guess in zip(records, predictions, strict=True)
        ]


def share(first: int, second: int, room: int) -> tuple[int, int]:
    """Lengths of two texts after the longer one has lost token by token until both fit `room`; the second on a tie."""
    half = room // 2
    if second <= half:
        return room - second, second
    if first <= room - half:
        return first, room - first
    return room - half, half
