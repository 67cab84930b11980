"""Extractive question answering: where in the context does the answer begin and end?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossalign.analysis.metrics import answer_scores
from crossalign.engine.batches import IGNORE, Field
from crossalign.engine.tokens import Specials, text_ids, text_spans
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Example, Examples, Record, Records, Task, group_by_record, mean_loss
from crossalign.tasks.records import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor, nn

    from crossalign.tasks.base import Batch, Outputs

# `adjust`, section 5: neighbouring windows share 128 tokens. The other two are the defaults of the usual scripts.
STRIDE = 128
LONGEST_QUESTION = 64
LONGEST_ANSWER = 30


class Answer(NamedTuple):
    """A predicted span: its characters in the context, and the sum of its two scores."""

    begin: int
    end: int
    score: float


class QaTask(Task):
    """Spans of a context. A prediction is a list of answers, the best first (`n_best` of them)."""

    name = "qa"
    metric = "F1"
    fields = {"start": Field(IGNORE, "scalar"), "end": Field(IGNORE, "scalar")}
    counts = {"F1": lambda row: (row["f1"] / 100, 1), "EM": lambda row: (row["exact"] / 100, 1)}
    fixed_labels = ()
    n_best = 20

    def read(self, path: str | Path) -> list[Record]:
        def check(record: Record, where: str) -> None:
            if not record["answers"]:
                raise UserError(f"{where}: question '{record['id']}' has no answer")
            for answer in record["answers"]:
                text, start = (answer.get("text"), answer.get("start")) if isinstance(answer, dict) else (None, None)
                if not isinstance(text, str) or not isinstance(start, int):
                    raise UserError(f"{where}: an answer needs 'text' (text) and 'start' (number)")
                if not text or start < 0 or not record["context"].startswith(text, start):
                    raise UserError(f"{where}: the answer '{text}' does not stand at character {start} of the context")

        return read_json(path, {"id": str, "question": str, "context": str, "answers": list}, "QA", check)

    def examples(
        self, records: Records, tokenizer: Tokenizer, max_length: int, training: bool = False
    ) -> list[Example]:
        """One example per window of the context. A window that does not hold the whole answer points at [CLS].

        `spans` has the place of each of the window's context tokens in characters, `shown` where they begin.
        """
        specials = Specials.of(tokenizer)
        questions = text_ids(tokenizer, (record["question"].lstrip() for record in records))
        contexts = text_spans(tokenizer, (record["context"] for record in records))
        room = specials.room(max_length, texts=2)
        longest = min(LONGEST_QUESTION, room // 2)
        examples = []
        for index, record in enumerate(records):
            question = questions[record["question"].lstrip()]
            cut = max(0, len(question) - longest)
            question = question[:longest]
            ids, spans = contexts[record["context"]]
            shown = specials.second_at(question)
            first, last = answer_tokens(record["answers"][0], spans)
            for begin, end in context_windows(len(ids), room - len(question), STRIDE):
                example = specials.pair(question, ids[begin:end])
                inside = begin <= first and last < end
                example |= {
                    "start": first - begin + shown if inside else 0,
                    "end": last - begin + shown if inside else 0,
                    "record": index,
                    "cut": cut if begin == 0 else 0,
                    "shown": shown,
                    "spans": spans[begin:end],
                }
                examples.append(example)
        return examples

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        """The library's head has no dropout of its own."""
        from crossalign.engine.heads import SpanHead

        return SpanHead(hidden)

    def loss(self, head: nn.Module, states: Tensor, batch: Batch) -> Tensor:
        starts, ends = head(states, batch["attention_mask"]).unbind(dim=1)
        return (mean_loss(starts, batch["start"]) + mean_loss(ends, batch["end"])) / 2

    def predict(self, head: nn.Module, states: Tensor, batch: Batch) -> Batch:
        starts, ends = head(states, batch["attention_mask"]).unbind(dim=1)
        return {"start": starts, "end": ends}

    def decode(self, examples: Examples, records: Records, outputs: Outputs) -> list[list[Answer]]:
        predictions = []
        for numbers in group_by_record(examples, len(records)):
            found: dict[tuple[int, int], float] = {}
            for number in numbers:
                shown, spans = examples[number]["shown"], examples[number]["spans"]
                place = slice(shown, shown + len(spans))
                starts, ends = (np.asarray(outputs[number][key])[place] for key in ("start", "end"))
                firsts, lasts, values = best_spans(starts, ends, self.n_best, LONGEST_ANSWER)
                places = zip(spans[firsts, 0].tolist(), spans[lasts, 1].tolist(), strict=True)
                for span, score in zip(places, values.tolist(), strict=True):
                    # Two windows may show the same span; the one that believes in it more speaks for it.
                    found[span] = max(score, found.get(span, -np.inf))
            ranked = sorted((-score, span) for span, score in found.items())
            predictions.append([Answer(*span, -negative) for negative, span in ranked[: self.n_best]])
        return predictions

    def score(self, records: Records, predictions: Sequence[list[Answer]]) -> dict[str, float]:
        rows = self._compare(records, predictions)
        f1, exact = np.array(rows, dtype=np.float64).reshape(-1, 2).mean(axis=0) if rows else (0.0, 0.0)
        return {"F1": float(f1), "EM": float(exact), "n": len(records)}

    def details(self, records: Records, predictions: Sequence[list[Answer]]) -> list[dict[str, Any]]:
        rows = self._compare(records, predictions)
        return [
            {"f1": round(f1, 6), "exact": round(exact), "span": list(answers[0][:2]) if answers else None}
            for (f1, exact), answers in zip(rows, predictions, strict=True)
        ]

    def _compare(self, records: Records, predictions: Sequence[list[Answer]]) -> list[tuple[float, float]]:
        return [
            answer_scores(best_text(record, answers), [answer["text"] for answer in record["answers"]])
            for record, answers in zip(records, predictions, strict=True)
        ]


def best_text(record: Record, answers: Sequence[Answer]) -> str:
    """The words of the best answer; nothing when the context has none."""
    return record["context"][answers[0].begin : answers[0].end] if answers else ""


def answer_tokens(answer: dict[str, Any], spans: np.ndarray) -> tuple[int, int]:
    """First and last token that hold the answer's characters; (-1, -1) when no token does."""
    begin, end = answer["start"], answer["start"] + len(answer["text"])
    first = int(np.searchsorted(spans[:, 1], begin, side="right"))
    last = int(np.searchsorted(spans[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else (-1, -1)


def context_windows(count: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Windows of at most `room` tokens over `count` tokens; neighbours share `stride`, or half where room is short."""
    step = room - min(stride, room // 2)
    windows = [(0, min(count, room))]
    while windows[-1][1] < count:
        begin = windows[-1][0] + step
        windows.append((begin, min(count, begin + room)))
    return windows


def best_spans(
    starts: np.ndarray, ends: np.ndarray, count: int, longest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The `count` best spans of at most `longest` tokens: first, last, sum of scores. Exact, not from short lists."""
    size = len(starts)
    if not size:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, starts
    width = min(longest, size)
    padded = np.concatenate([ends, np.full(width - 1, -np.inf, dtype=ends.dtype)])
    # totals[i, k]: the span from token i to token i + k.
    totals = starts[:, None] + np.lib.stride_tricks.sliding_window_view(padded, width)
    flat = totals.reshape(-1)
    chosen = np.argpartition(-flat, count - 1)[:count] if count < flat.size else np.arange(flat.size)
    chosen = chosen[np.lexsort((chosen, -flat[chosen]))]
    chosen = chosen[np.isfinite(flat[chosen])]
    first, more = np.divmod(chosen, width)
    return first, first + more, flat[chosen]
