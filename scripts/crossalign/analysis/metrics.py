"""Metrics of the papers, in percent, on plain sequences of labels.

Counts come first and percentages last, so that a significance test can add up the counts of any sample of sentences.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

Tags = Sequence[Sequence[str]]


def percent(part: float, whole: float) -> float:
    """Share in percent; 0 of nothing is 0."""
    return 100.0 * float(part) / float(whole) if whole else 0.0


def f1_scores(right: float, predicted: float, gold: float) -> dict[str, float]:
    """Precision, recall and F1 in percent, from counts; 0 where undefined, as in conlleval."""
    return {
        "precision": percent(right, predicted),
        "recall": percent(right, gold),
        "F1": percent(2 * right, predicted + gold),
    }


def attachment(
    gold_heads: np.ndarray, gold_labels: np.ndarray, heads: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """UAS and LAS over all words, punctuation counted: right head, right head and relation."""
    right = gold_heads == heads
    return {
        "UAS": percent(right.sum(), len(right)),
        "LAS": percent((right & (gold_labels == labels)).sum(), len(right)),
    }


class EntityCounts:
    """Right, predicted and gold entities as conlleval counts them, per sentence and per type.

    An entity begins at B, at I after O, and at I of another type than the tag before; so tags that break the rules of
    IOB2 still have one reading.
    """

    def __init__(self, gold: Tags, predicted: Tags) -> None:
        if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
            raise ValueError("gold and predicted tags differ in number")
        names: dict[str, int] = {}
        gold_entities = _entities(gold, names)
        predicted_entities = _entities(predicted, names)
        self.types = sorted(names)
        rank = np.empty(len(names), dtype=np.int64)
        rank[[names[name] for name in self.types]] = np.arange(len(names))
        # No two entities of a side share sentence and first word, so each row is met at most once on either side.
        longest = 1 + max(int(found[:, 2].max(initial=0)) for found in (gold_entities, predicted_entities))
        right = np.isin(*(_keys(found, longest, len(names)) for found in (gold_entities, predicted_entities)))
        # Sentence x type x (right, predicted, gold).
        self.table = np.zeros((len(gold), len(self.types), 3), dtype=np.int64)
        for column, found in enumerate((gold_entities[right], predicted_entities, gold_entities)):
            np.add.at(self.table[..., column], (found[:, 0], rank[found[:, 3]]), 1)

    @property
    def by_sentence(self) -> np.ndarray:
        """Sentences x (right, predicted, gold)."""
        return self.table.sum(axis=1)

    def scores(self) -> dict[str, float]:
        """Micro-averaged precision, recall and F1, and `F1_<type>` for every type."""
        scores = f1_scores(*self.by_sentence.sum(axis=0))
        for name, counts in zip(self.types, self.table.sum(axis=0), strict=True):
            scores[f"F1_{name}"] = f1_scores(*counts)["F1"]
        return scores


def _entities(sentences: Tags, names: dict[str, int]) -> np.ndarray:
    """All entities as rows of sentence, first word, last word, type; new types are added to `names`."""
    kinds = {"O": (-1, False)}
    for tag in sorted({tag for tags in sentences for tag in tags} - {"O"}):
        prefix, _, name = tag.partition("-")
        if prefix not in ("B", "I"):
            raise ValueError(f"'{tag}' is no IOB2 tag")
        kinds[tag] = (names.setdefault(name, len(names)), prefix == "B")
    # One O after each sentence keeps its last entity from running into the next.
    flat = [kinds[tag] for tags in sentences for tag in (*tags, "O")]
    kind = np.array([pair[0] for pair in flat], dtype=np.int64)
    begins = np.array([pair[1] for pair in flat], dtype=bool)
    starts = (kind >= 0) & (begins | (kind != np.concatenate(([-1], kind[:-1]))))
    first = np.flatnonzero(starts)
    # An entity ends before the next O or the next beginning, whichever comes first.
    stops = np.flatnonzero(starts | (kind < 0))
    last = stops[np.searchsorted(stops, first, side="right")] - 1
    offsets = np.cumsum([0, *(len(tags) + 1 for tags in sentences)])
    sentence = np.searchsorted(offsets, first, side="right") - 1
    return np.stack([sentence, first - offsets[sentence], last - offsets[sentence], kind[first]], axis=1)


def _keys(rows: np.ndarray, longest: int, types: int) -> np.ndarray:
    """Rows as single numbers."""
    return ((rows[:, 0] * longest + rows[:, 1]) * longest + rows[:, 2]) * types + rows[:, 3]


def token_counts(gold: Tags, predicted: Tags) -> np.ndarray:
    """Sentences x (right, predicted, gold) over single tokens that are not O, without B and I (`adjust`, section 6)."""
    kinds = {tag: tag.partition("-")[2] for tags in (*gold, *predicted) for tag in tags}
    rows = []
    for true, guess in zip(gold, predicted, strict=True):
        pairs = [(kinds[a], kinds[b]) for a, b in zip(true, guess, strict=True) if a != "O" or b != "O"]
        rows.append((sum(a == b for a, b in pairs), sum(b != "" for _, b in pairs), sum(a != "" for a, _ in pairs)))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """The rules of the SQuAD script: lower case, no ASCII punctuation, no English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def answer_scores(predicted: str, answers: Sequence[str]) -> tuple[float, float]:
    """F1 and exact match, 0 to 100, of a predicted answer: the best over the gold answers, each for itself."""
    guess = normalise_answer(predicted)
    guess_words = Counter(guess.split())
    f1 = exact = 0.0
    for answer in answers:
        gold = normalise_answer(answer)
        exact = max(exact, 100.0 * (gold == guess))
        gold_words = Counter(gold.split())
        same = (guess_words & gold_words).total()
        f1 = max(f1, f1_scores(same, guess_words.total(), gold_words.total())["F1"])
    return f1, exact
