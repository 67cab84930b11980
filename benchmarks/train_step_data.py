"""Data for benchmarks/train_step.py: the five tasks' prepared files, made from one English treebank.

Words, trees and lengths are real. Entities (runs of proper nouns), sentence pairs and questions are made up from them:
what a step costs does not depend on what the labels mean.
"""

from collections.abc import Iterator
from pathlib import Path

from common import find, text_of

from crossalign.data.conllu import Sentence, read_sentences, write_sentences
from crossalign.data.lines import write_rows

LABELS = ("entailment", "neutral", "contradiction")


def write_tasks(source: Path, target: Path, split: str, limit: int) -> dict[str, Path]:
    """Prepared files of all tasks from the first `limit` sentences of a split."""
    treebank = find(source, f"*ewt*{split}.conllu*")
    data = list(read_sentences(text_of(treebank).split("\n"), treebank.name))[:limit]
    plain = [" ".join(sentence.forms) for sentence in data]
    pairs = zip(plain, plain[1:] + plain[:1], strict=True)
    rows = {
        "ner": ({"id": str(i), "tokens": s.forms, "tags": _tags(s)} for i, s in enumerate(data)),
        "nli": (
            {"id": str(i), "premise": a, "hypothesis": b, "label": LABELS[i % 3]} for i, (a, b) in enumerate(pairs)
        ),
        "qa": _questions(plain),
    }
    files = {name: target / f"{name}-{split}.jsonl" for name in rows}
    for name, file in files.items():
        with file.open("w", encoding="utf-8") as stream:
            write_rows(rows[name], stream)
    files["pos"] = files["parsing"] = target / f"trees-{split}.conllu"
    with files["pos"].open("w", encoding="utf-8") as stream:
        write_sentences(data, stream)
    return files


def _tags(sentence: Sentence) -> list[str]:
    tags, inside = [], False
    for form, tag in zip(sentence.forms, sentence.upos, strict=True):
        name = tag == "PROPN"
        tags.append(("I-" if inside else "B-") + ("PER", "LOC", "ORG")[len(form) % 3] if name else "O")
        if inside and name:
            tags[-1] = "I-" + tags[-2][2:]
        inside = name
    return tags


def _questions(plain: list[str]) -> Iterator[dict]:
    """Contexts of a dozen sentences, about as long as SQuAD's: most give one window of 384 tokens or nearly so."""
    for i in range(0, len(plain) - 20):
        context = " ".join(plain[i : i + 20])[:1600]
        answer = context.split()[len(context.split()) // 2]
        answers = [{"text": answer, "start": context.index(answer)}]
        yield {"id": str(i), "question": plain[i + 3][:120], "context": context, "answers": answers}
