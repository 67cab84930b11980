"""Questions: SQuAD-format JSON in, JSON lines {"id", "question", "context", "answers": [{"text", "start"}]} out.

Offsets count characters (code points). An answer that does not stand where its offset says is looked up nearby.
"""

import json
from collections.abc import Iterator
from typing import IO, Any

from crossalign.data.lines import Source, shown
from crossalign.data.report import Names, Report
from crossalign.runtime.errors import UserError

# TyDi QA names its files by language, in English words.
TYDI_NAMES = {
    **{"ar": "arabic", "bn": "bengali", "en": "english", "fi": "finnish", "id": "indonesian", "ko": "korean"},
    **{"ru": "russian", "sw": "swahili", "te": "telugu"},
}


def load_questions(source: Source) -> Iterator[dict[str, Any]]:
    """All questions of a SQuAD-format file as they stand: id, question, context, answers, is_impossible."""
    with source.open() as stream:
        yield from read_questions(stream, source.name)


def read_questions(stream: IO[str], name: str) -> Iterator[dict[str, Any]]:
    """All questions of a SQuAD-format stream called `name` in messages."""
    try:
        release = json.load(stream)
    except json.JSONDecodeError as error:
        raise UserError(f"{name}: not JSON: {error}; download it again") from None
    articles = _field(release, "data", list, name, "the file")
    for a, article in enumerate(articles):
        place = f"data[{a}]"
        for p, paragraph in enumerate(_field(article, "paragraphs", list, name, place)):
            spot = f"{place}.paragraphs[{p}]"
            context = _field(paragraph, "context", str, name, spot)
            for q, raw in enumerate(_field(paragraph, "qas", list, name, spot)):
                yield _question(raw, context, name, f"{spot}.qas[{q}]")


def _question(raw: Any, context: str, name: str, spot: str) -> dict[str, Any]:
    question = _field(raw, "question", str, name, spot)
    impossible = bool(raw.get("is_impossible", False))
    answers = [
        (_field(answer, "text", str, name, spot), _field(answer, "answer_start", int, name, spot))
        for answer in ([] if impossible else _field(raw, "answers", list, name, spot))
    ]
    # Some releases have numbers for identifiers.
    identity = str(_field(raw, "id", (str, int), name, spot))
    head = {"id": identity, "question": question, "context": context}
    return {**head, "answers": answers, "is_impossible": impossible}


def _field(thing: Any, key: str, kind: type | tuple[type, ...], name: str, spot: str) -> Any:
    value = thing.get(key) if isinstance(thing, dict) else None
    if not isinstance(value, kind):
        raise UserError(f"{name}: {spot} has no '{key}' of the SQuAD format; found {shown(repr(thing), 80)}")
    return value


def prepare_questions(questions: Iterator[dict[str, Any]], report: Report) -> Iterator[dict[str, Any]]:
    """Drop what has no answer, mend wrong offsets and repeated identifiers."""
    names = Names(report)
    for question in questions:
        report.read += 1
        head = {key: question[key] for key in ("id", "question", "context")}
        places = (_locate(head["context"], *answer, report) for answer in question["answers"])
        if question["is_impossible"]:
            report.drop("impossible")
        elif not any(text.strip() for text, _ in question["answers"]):
            report.drop("no answer")
        elif answers := list(filter(None, places)):
            report.kept += 1
            report.counts["answers"] += len(answers)
            yield {**head, "id": names.take(head["id"]), "answers": answers}
        else:
            report.drop("answer not in context")


def _locate(context: str, text: str, start: int, report: Report) -> dict[str, Any] | None:
    if not text.strip():
        report.counts["answers_empty"] += 1
        return None
    if start >= 0 and context.startswith(text, start):
        return {"text": text, "start": start}
    place = nearest(context, text, start)
    if place is None:
        report.counts["answers_not_in_context"] += 1
        return None
    report.repair("answer offset")
    return {"text": text, "start": place}


def nearest(context: str, text: str, start: int) -> int | None:
    """Where `text` occurs in `context` nearest to `start`, the earlier place if two are as near; None if nowhere."""
    start = min(max(start, 0), len(context))
    after = context.find(text, start)
    before = context.rfind(text, 0, start + len(text) - 1)
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: (abs(place - start), place), default=None)


def cross_questions(
    questions: Iterator[dict[str, Any]], contexts: Iterator[dict[str, Any]], question_name: str, context_name: str
) -> Iterator[dict[str, Any]]:
    """Questions of one language with the contexts and answers of another, joined by identifier.

    Both files must hold the same questions: a parallel set with a hole is not one.
    """
    asked = {question["id"]: question["question"] for question in questions}
    for context in contexts:
        question = asked.pop(context["id"], None)
        if question is None:
            raise UserError(f"{question_name}: no question {shown(context['id'])}, which {context_name} has")
        yield {**context, "question": question}
    if asked:
        raise UserError(f"{context_name}: no question {shown(next(iter(asked)))}, which {question_name} has")
