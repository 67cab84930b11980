"""What every task has in common: fields of an example, the interface, label sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from crossalign.engine.batches import Field
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from tokenizers import Tokenizer
    from torch import nn

# One row of a batch: `input_ids`, where needed `token_type_ids`, and the task's fields, as plain integers or lists of
# them. Other keys are the task's own notes for decoding (`record`: which record it comes from; `cut`: how much of the
# record no example shows to the model) and are not part of a batch.
Example = dict[str, Any]
Record = dict[str, Any]


class Task:
    """A task: how records become examples, the head and its loss, decoding and scores.

    Scores are in percent. `n` counts records, `words` words.
    """

    name: ClassVar[str]
    metric: ClassVar[str]
    selection_metric: ClassVar[str]
    fields: ClassVar[dict[str, Field]]

    def __init__(self, labels: Sequence[str] | None = None) -> None:
        self._labels = None if labels is None else tuple(labels)
        if self._labels is not None and len(set(self._labels)) != len(self._labels):
            raise UserError(f"the labels of task '{self.name}' contain doubles: {', '.join(self._labels)}")

    @property
    def labels(self) -> tuple[str, ...]:
        """The label set; label number i of a prediction is `labels[i]`."""
        if self._labels is None:
            raise UserError(f"task '{self.name}' has no label set yet: take it from the training records")
        return self._labels

    def read(self, path: str | Path) -> list[Record]:
        """The records of a prepared file; a UserError when it is empty or of another kind."""
        raise NotImplementedError

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        """The label set that training on `records` needs, in a fixed order."""
        raise NotImplementedError

    def examples(
        self, records: Sequence[Record], tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        """Numbers for the model. In training what is too long is cut; otherwise every record is shown in full
        wherever the task allows, if need be as several examples."""
        raise NotImplementedError

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        """A freshly drawn head for an encoder with `hidden` neurons."""
        raise NotImplementedError

    def loss(self, head: nn.Module, hidden_states: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Mean loss over the real targets of a batch. Static shapes, no host synchronisation."""
        raise NotImplementedError

    def predict(
        self, head: nn.Module, hidden_states: torch.Tensor, batch: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """What decoding needs, one row per example."""
        raise NotImplementedError

    def decode(
        self, examples: Sequence[Example], records: Sequence[Record], outputs: Sequence[dict[str, np.ndarray]]
    ) -> list[Any]:
        """One prediction per record from the rows that `predict` gave for each example, in the examples' order.

        Rows may be padded to any length.
        """
        raise NotImplementedError

    def score(self, records: Sequence[Record], predictions: Sequence[Any]) -> dict[str, float]:
        """All metrics of the task."""
        raise NotImplementedError

    def details(self, records: Sequence[Record], predictions: Sequence[Any]) -> list[dict[str, Any]]:
        """Per record, what significance tests need, small enough to keep for every run."""
        raise NotImplementedError


def sorted_labels(labels: Iterable[str], first: str | None = None) -> list[str]:
    """Each label once, sorted, with `first` at the front."""
    found = set(labels)
    return ([first] if first is not None else []) + sorted(found - {first})


def group_by_record(examples: Sequence[Example], count: int) -> list[list[int]]:
    """For each of `count` records the numbers of its examples, in order."""
    groups: list[list[int]] = [[] for _ in range(count)]
    for number, example in enumerate(examples):
        groups[example["record"]].append(number)
    return groups
