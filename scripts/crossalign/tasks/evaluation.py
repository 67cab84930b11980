"""Evaluate a tuned model on many sets at once.

Beside each metric stand the ends of its bootstrap interval over the records: `LAS_low` and `LAS_high` beside `LAS`
(95 %, 1,000 resamples, always the same ones).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from crossalign.analysis.intervals import score_intervals
from crossalign.tasks.base import Example, Record, Task

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

Predict = Callable[[Sequence[Example]], "Sequence[dict[str, np.ndarray]]"]


def evaluate_sets(
    task: Task, sets: dict[str, list[Record]], tokenizer: Tokenizer, max_length: int, predict: Predict
) -> tuple[dict[str, dict[str, float]], dict[str, list[dict[str, Any]]]]:
    """Scores of each set, and its rows for a file of predictions: the record's `id` and the task's details.

    `predict` sees the examples of all sets in one go, so that they share batches. `cut_tokens` tells how many tokens of
    too long texts no example shows.
    """
    examples = {name: task.examples(records, tokenizer, max_length) for name, records in sets.items()}
    outputs = predict([example for part in examples.values() for example in part])
    scores, rows = {}, {}
    place = 0
    for name, records in sets.items():
        part = examples[name]
        predictions = task.decode(part, records, outputs[place : place + len(part)])
        place += len(part)
        scores[name] = task.score(records, predictions)
        if "cut_words" not in scores[name]:
            scores[name]["cut_tokens"] = sum(example["cut"] for example in part)
        details = task.details(records, predictions)
        rows[name] = [{"id": record["id"], **row} for record, row in zip(records, details, strict=True)]
    for name, ends in score_intervals(task.name, rows).items():
        scores[name] |= ends
    return scores, rows
