"""Natural language inference: one of three labels for a premise and a hypothesis, or one of others for other pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossalign.analysis.metrics import percent
from crossalign.engine.batches import IGNORE, Field
from crossalign.engine.tokens import Specials, text_ids
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Example, Examples, Record, Records, Task, mean_loss
from crossalign.tasks.records import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor, nn

    from crossalign.tasks.base import Batch, Outputs


class NliTask(Task):
    """Pairs of sentences. A prediction is the number of a label."""

    name = "nli"
    metric = "accuracy"
    fields = {"label": Field(IGNORE, "scalar")}
    counts = {"accuracy": lambda row: (row["right"], 1)}
    fixed_labels = ("entailment", "neutral", "contradiction")

    def __init__(self, labels: Sequence[str] | None = None) -> None:
        super().__init__(labels)
        # Pairs of another kind, such as paraphrases, have labels of their own: then those of the training data.
        self.may_differ = labels is None

    def read(self, path: str | Path) -> list[Record]:
        def check(record: Record, where: str) -> None:
            if record["label"] not in self.labels:
                strange.append(f"{where}: label '{record['label']}' is none of {', '.join(self.labels)}")

        strange: list[str] = []
        records = read_json(path, {"id": str, "premise": str, "hypothesis": str, "label": str}, "NLI", check)
        if strange and not (self.may_differ and len(strange) == len(records)):
            raise UserError(strange[0])
        return records

    def labels_from(self, records: Iterable[Record]) -> list[str]:
        labels = {record["label"] for record in records}
        return list(self.fixed_labels) if labels <= set(self.fixed_labels) else sorted(labels)

    def examples(
        self, records: Records, tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        """Pairs longer than `max_length` lose the end of their longer sentence, as in the papers; `cut` counts it."""
        specials = Specials.of(tokenizer)
        room = specials.room(max_length, texts=2)
        table = text_ids(tokenizer, chain.from_iterable((r["premise"], r["hypothesis"]) for r in records))
        examples = []
        for index, record in enumerate(records):
            premise, hypothesis = table[record["premise"]], table[record["hypothesis"]]
            cut = max(0, len(premise) + len(hypothesis) - room)
            if cut:
                first, second = share(len(premise), len(hypothesis), room)
                premise, hypothesis = premise[:first], hypothesis[:second]
            label = self.numbers.get(record["label"], IGNORE)
            examples.append(specials.pair(premise, hypothesis) | {"label": label, "record": index, "cut": cut})
        return examples

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        from crossalign.engine.heads import SequenceHead

        return SequenceHead(hidden, len(self.labels), dropout)

    def loss(self, head: nn.Module, states: Tensor, batch: Batch) -> Tensor:
        return mean_loss(self._scores(head, states, batch), batch["label"])

    def predict(self, head: nn.Module, states: Tensor, batch: Batch) -> Batch:
        return {"label": self._scores(head, states, batch).argmax(dim=-1)}

    def _scores(self, head: nn.Module, states: Tensor, batch: Batch) -> Tensor:
        return head(states, batch["attention_mask"] if self.causal else None)

    def decode(self, examples: Examples, records: Records, outputs: Outputs) -> list[int]:
        return [int(output["label"]) for output in outputs]

    def score(self, records: Records, predictions: Sequence[int]) -> dict[str, float]:
        right = sum(row["right"] for row in self.details(records, predictions))
        return {"accuracy": percent(right, len(records)), "n": len(records)}

    def details(self, records: Records, predictions: Sequence[int]) -> list[dict[str, Any]]:
        return [
            {"label": guess, "right": int(self.numbers.get(record["label"]) == guess)}
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
