"""Evaluate a tuned model on many sets at once.

Beside each metric stand the ends of its bootstrap interval over the records: `LAS_low` and `LAS_high` beside `LAS`
(95 %, 1,000 resamples, always the same ones).
"""

from collections.abc import Callable, Sequence
from typing import Any

from crossalign.analysis.significance import score_intervals
from crossalign.engine.examples import Encoded, FlatExamples
from crossalign.tasks.base import Example, Record, Task
from crossalign.tasks.predictions import Rows, Scores


def evaluate_sets(
    task: Task,
    sets: dict[str, list[Record]],
    tokenizer: Any,
    max_length: int,
    predict: Callable[[Sequence[Example]], Sequence[dict[str, Any]]],
    ended: Callable[[str], None] = lambda stage: None,
    encode: Encoded | None = None,
) -> tuple[Scores, Rows]:
    """Scores of each set, and its rows for a file of predictions: the record's `id` and the task's details.

    `predict` sees the examples of all sets in one go, so that they share batches. `cut_tokens` tells how many tokens of
    too long texts no example shows. `ended` is told the name of each stage when it is over. `encode` knows the sets by
    name and keeps what they become.
    """
    # All sets at once: trees of one size are decoded together, and what sets have in common is tokenised once.
    everything = [record for records in sets.values() for record in records]
    parts = [encode(name, task, records, tokenizer, max_length) for name, records in sets.items()] if encode else []
    if parts and all(isinstance(part, FlatExamples) for part in parts):
        examples = FlatExamples.joined(parts, list(map(len, sets.values())))
    else:
        examples = task.examples(everything, tokenizer, max_length)
    ended("tokenise")
    outputs = predict(examples)
    ended("predict")
    predictions = task.decode(examples, everything, outputs)
    ended("decode")
    cut = [0] * len(everything)
    for example in examples:
        cut[example["record"]] += example["cut"]
    scores, rows = {}, {}
    stop = 0
    for name, records in sets.items():
        part = slice(stop, stop := stop + len(records))
        scores[name] = task.score(records, predictions[part])
        if "cut_words" not in scores[name]:
            scores[name]["cut_tokens"] = sum(cut[part])
        details = task.details(records, predictions[part])
        rows[name] = [{"id": record["id"], **row} for record, row in zip(records, details, strict=True)]
    for name, ends in score_intervals(task, rows).items():
        scores[name] |= ends
    ended("score")
    return scores, rows
