"""Data for benchmarks/train_step.py: the five tasks' prepared files, made from one English treebank.

Words, trees and lengths are real. Entities (runs of proper nouns), sentence pairs and questions are made up from them:
what a step costs does not depend on what the labels mean.
"""

import json
from pathlib import Path

from common import find, text_of

LABELS = ("entailment", "neutral", "contradiction")


def sentences(path: Path) -> list[list[list[str]]]:
    """The word lines (ten columns) of each sentence of a CoNLL-U file."""
    blocks = text_of(path).strip("\n").split("\n\n")
    rows = ([line.split("\t") for line in block.split("\n") if line[0] != "#"] for block in blocks)
    return [[row for row in sentence if row[0].isdigit()] for sentence in rows]


def write_tasks(source: Path, target: Path, split: str, limit: int) -> dict[str, Path]:
    """Prepared files of all tasks from the first `limit` sentences of a split."""
    data = sentences(find(source, f"*ewt*{split}.conllu*"))[:limit]
    plain = [" ".join(row[1] for row in sentence) for sentence in data]
    files = {name: target / f"{name}-{split}.jsonl" for name in ("ner", "nli", "qa")}
    files["pos"] = files["parsing"] = target / f"trees-{split}.conllu"
    write_trees(data, files["pos"])
    _write(files["ner"], ({"id": str(i), "tokens": [r[1] for r in s], "tags": _tags(s)} for i, s in enumerate(data)))
    pairs = zip(plain, plain[1:] + plain[:1], strict=True)
    _write(
        files["nli"],
        ({"id": str(i), "premise": a, "hypothesis": b, "label": LABELS[i % 3]} for i, (a, b) in enumerate(pairs)),
    )
    _write(files["qa"], _questions(plain))
    return files


def write_trees(data: list[list[list[str]]], target: Path) -> None:
    """A prepared treebank, in the form that the workflow itself writes: it is read faster than others."""
    with target.open("w", encoding="utf-8") as stream:
        for number, sentence in enumerate(data, 1):
            print(f"# sent_id = {number}", file=stream)
            for row in sentence:
                relation = row[7].partition(":")[0]
                print(row[0], row[1], "_", row[3], "_", "_", row[6], relation, "_", "_", sep="\t", file=stream)
            print(file=stream)


def _tags(sentence: list[list[str]]) -> list[str]:
    tags, inside = [], False
    for row in sentence:
        name = row[3] == "PROPN"
        tags.append(("I-" if inside else "B-") + ("PER", "LOC", "ORG")[len(row[1]) % 3] if name else "O")
        if inside and name:
            tags[-1] = "I-" + tags[-2][2:]
        inside = name
    return tags


def _questions(plain: list[str]):
    """Contexts of a dozen sentences, about as long as SQuAD's: most give one window of 384 tokens or nearly so."""
    for i in range(0, len(plain) - 20):
        context = " ".join(plain[i : i + 20])[:1600]
        answer = context.split()[len(context.split()) // 2]
        yield {
            "id": str(i),
            "question": plain[i + 3][:120],
            "context": context,
            "answers": [{"text": answer, "start": context.index(answer)}],
        }


def _write(path: Path, rows) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False), file=stream)
