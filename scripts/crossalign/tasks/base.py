"""What every task has in common: the interface, label sets, records and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from crossalign.engine.batches import Field
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer
    from torch import Tensor, nn

    Batch = dict[str, Tensor]
    Outputs = Sequence[dict[str, np.ndarray]]

# One row of a batch: `input_ids`, where needed `token_type_ids`, and the task's fields, as plain integers or lists of
# them. Other keys are the task's own notes for decoding (`record`: which record it comes from; `cut`: how much of the
# record no example shows to the model) and are not part of a batch.
Example = dict[str, Any]
Record = dict[str, Any]
Examples = Sequence[Example]
Records = Sequence[Record]


class Task:
    """A task: how records become examples, the head and its loss, decoding and scores.

    Scores are in percent. `n` counts records, `words` words.
    """

    name: ClassVar[str]
    metric: ClassVar[str]
    fields: ClassVar[dict[str, Field]]
    # By metric, what intervals and significance tests count in a row of `details`: (right, all), or for an F1
    # (right, predicted, gold).
    counts: ClassVar[dict[str, Callable[[dict[str, Any]], Sequence[float]]]]
    # None: the label set is that of the training data.
    fixed_labels: ClassVar[tuple[str, ...] | None] = None
    # Whether the model is a decoder, whose tokens see only what is before them: as is usual for decoders, words and
    # pairs of texts are then read off their last token, not off the first.
    causal: bool = False

    def __init__(self, labels: Sequence[str] | None = None) -> None:
        self._labels = self.fixed_labels if labels is None else tuple(labels)
        if self._labels is not None and len(set(self._labels)) != len(self._labels):
            raise UserError(f"the labels of task '{self.name}' contain doubles: {', '.join(self._labels)}")

    @property
    def labels(self) -> tuple[str, ...]:
        """The label set; label number i of a prediction is `labels[i]`."""
        if self._labels is None:
            raise UserError(f"task '{self.name}' has no label set yet: take it from the training records")
        return self._labels

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each label."""
        return {label: number for number, label in enumerate(self.labels)}

    def read(self, path: str | Path) -> list[Record]:
        """The records of a prepared file; a UserError when it is empty or of another kind."""
        raise NotImplementedError

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        """The label set that training on `records` needs, in a fixed order."""
        return list(self.fixed_labels)

    def with_labels_of(self, records: Iterable[Record]) -> Self:
        """The task with the label set of these training records."""
        return type(self)(self.labels_from(records))

    def examples(
        self, records: Records, tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        """Numbers for the model. In training what is too long is cut; otherwise every record is shown in full
        wherever the task allows, if need be as several examples."""
        raise NotImplementedError

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        """A freshly drawn head for an encoder with `hidden` neurons."""
        raise NotImplementedError

    def loss(self, head: nn.Module, states: Tensor, batch: Batch) -> Tensor:
        """Mean loss over the real targets of a batch. Static shapes, no host synchronisation."""
        raise NotImplementedError

    def predict(self, head: nn.Module, states: Tensor, batch: Batch) -> Batch:
        """What decoding needs, one row per example."""
        raise NotImplementedError

    def decode(self, examples: Examples, records: Records, outputs: Outputs) -> list[Any]:
        """One prediction per record from the rows that `predict` gave for each example, in the examples' order.

        Rows may be padded to any length.
        """
        raise NotImplementedError

    def score(self, records: Records, predictions: Sequence[Any]) -> dict[str, float]:
        """All metrics of the task."""
        raise NotImplementedError

    def details(self, records: Records, predictions: Sequence[Any]) -> list[dict[str, Any]]:
        """Per record, what significance tests need, small enough to keep for every run."""
        raise NotImplementedError


def mean_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy over the targets that count."""
    # Here and in `make_head` PyTorch is loaded late: tables ask tasks how to count, and need none of it.
    from crossalign.engine.heads import mean_cross_entropy

    return mean_cross_entropy(scores, targets)


def group_by_record(examples: Examples, count: int) -> list[list[int]]:
    """For each of `count` records the numbers of its examples, in order."""
    groups: list[list[int]] = [[] for _ in range(count)]
    for number, example in enumerate(examples):
        groups[example["record"]].append(number)
    return groups
