"""The floors of competence: no score below them is anything but guessing, measured on real test sets."""

import gzip
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from crossalign.analysis.metrics import EntityCounts, answer_scores, attachment, percent
from crossalign.data.conllu import read_sentences
from crossalign.data.ner import NerFormat, read_ner
from crossalign.data.nli import read_pairs
from crossalign.data.qa import prepare_questions, read_questions
from crossalign.data.report import Report
from crossalign.results.claims.tolerances import tolerance

# The WikiANN files come with and without a column of word numbers.
CLASSES = ("LOC", "ORG", "PER")
NER_FORMATS = {"wikiann": NerFormat("\t", 2, CLASSES), "wikiann_test": NerFormat("\t", 3, CLASSES)}
# A stop of any script that ends a sentence.
STOP = re.compile(r"(?<=[.!?।۔。！？])\s*")
CAPITALISED = re.compile(r"\b[^\W\d_a-zа-я]\w*(?:\s+[^\W\d_a-zа-я]\w*)*")


def opened(path: Path):
    return gzip.open(path, "rt", encoding="utf-8", newline="\n")


def trees(path: Path) -> list:
    with opened(path) as stream:
        return list(read_sentences(stream, path.name))


def majority(labels: list[str]) -> float:
    """The share of the most frequent label."""
    return percent(max(Counter(labels).values()), len(labels))


def guessed_nli(path: Path) -> float:
    """Accuracy of always the same label."""
    with opened(path) as stream:
        return majority([row["label"] for row in read_pairs(stream, path.name, Report())])


def guessed_pos(path: Path) -> float:
    """Accuracy of the most frequent tag for every word."""
    return majority([tag for sentence in trees(path) for tag in sentence.upos])


def guessed_parsing(path: Path) -> float:
    """LAS of every word under its neighbour to the left, or to the right, by the one relation that fits best.

    The word at the end, which has no neighbour, is the root.
    """
    sentences = trees(path)
    gold_heads = np.concatenate([sentence.heads for sentence in sentences])
    gold_labels = np.array([label for sentence in sentences for label in sentence.deprels])
    best = 0.0
    for side in (-1, 1):
        heads = np.concatenate(
            [
                [0 if place in (0, len(sentence.heads) + 1) else place for place in places]
                for sentence in sentences
                for places in [[word + side for word in range(1, len(sentence.heads) + 1)]]
            ]
        )
        fits = Counter(gold_labels[(gold_heads == heads) & (heads > 0)])
        relation = max(fits, key=lambda name: fits[name])
        labels = np.where(heads == 0, "root", relation)
        best = max(best, attachment(gold_heads, gold_labels, heads, labels)["LAS"])
    return best


def guessed_ner(path: Path) -> float:
    """Entity F1 of one class for all words: as one entity a sentence, or as one entity a word."""
    form = NER_FORMATS[path.parent.name]
    lang, split, *_ = path.name.split(".")
    with opened(path) as stream:
        gold = [row["tags"] for row in read_ner(stream, path.name, form, lang, split, Report())]
    best = 0.0
    for name in CLASSES:
        for rest in ("B", "I"):
            guess = [[f"B-{name}", *[f"{rest}-{name}"] * (len(tags) - 1)] for tags in gold]
            best = max(best, EntityCounts(gold, guess).scores()["F1"])
    return best


def guessed_qa(path: Path) -> float:
    """F1 of the best of: the whole paragraph, its first sentence, its first capitalised words, words from anywhere."""
    with opened(path) as stream:
        rows = list(prepare_questions(read_questions(stream, path.name), Report()))
    long = round(sum(len(row["answers"][0]["text"].split()) for row in rows) / len(rows))
    chance = random.Random(0)
    scores = Counter()
    for row in rows:
        context, words = row["context"], row["context"].split()
        first = chance.randrange(max(1, len(words) - long))
        guesses = {
            "paragraph": context,
            "sentence": next(filter(None, STOP.split(context)), context),
            "capitalised": found.group() if (found := CAPITALISED.search(context)) else "",
            "anywhere": " ".join(words[first : first + long]),
        }
        answers = [answer["text"] for answer in row["answers"]]
        for name, guess in guesses.items():
            scores[name] += answer_scores(guess, answers)[0]
    return max(scores.values()) / len(rows)


# Test sets with trees leave out tweets, which have several roots.
TREEBANKS = ["ud/UD_*/*-test.conllu.gz"]
GUESSES = {
    "nli": (guessed_nli, ["xnli/*.test.tsv.gz"]),
    "pos": (guessed_pos, TREEBANKS),
    "parsing": (guessed_parsing, TREEBANKS),
    "ner": (guessed_ner, ["wikiann_test/*.test.*", "wikiann/*.dev.*"]),
    "qa": (guessed_qa, ["xquad/xquad.*", "mlqa/dev-*", "tydiqa_answers/*_dev.*"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", GUESSES)
def test_guessing_stays_below_the_floor(task, shared):
    """On nine test sets of ten; nor does a floor lie far above the best of these guesses."""
    guess, patterns = GUESSES[task]
    found = sorted(guess(path) for pattern in patterns for path in (shared / "data").glob(pattern))
    floor = tolerance(f"floor_{task}") + 0.05
    below = [value for value in found if value <= floor]
    assert len(below) >= 0.9 * len(found) > 0
    assert floor - below[-1] < 2
