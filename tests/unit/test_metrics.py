"""Metrics against seqeval, an independently written scorer, and values worked out by hand."""

import random
import warnings

import numpy as np
import pytest
import seqeval.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from crossalign.analysis.metrics import (
    EntityCounts,
    answer_scores,
    attachment,
    f1_scores,
    normalise_answer,
    token_counts,
)

# I without B, I after another type, B after B: everything that IOB2 forbids or allows.
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
sentence = st.lists(st.sampled_from(TAGS), min_size=1, max_size=12)


@st.composite
def corpora(draw):
    gold = draw(st.lists(sentence, min_size=1, max_size=8))
    guess = [draw(st.lists(st.sampled_from(TAGS), min_size=len(tags), max_size=len(tags))) for tags in gold]
    return gold, guess


@settings(max_examples=150, deadline=None)
@given(corpora())
def test_entity_scores_are_seqevals(corpus):
    gold, guess = corpus
    scores = EntityCounts(gold, guess).scores()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("precision", "recall", "F1"):
            theirs = getattr(seqeval.metrics, f"{name.lower()}_score")(gold, guess)
            assert scores[name] == pytest.approx(100 * theirs, abs=1e-9)
        report = seqeval.metrics.classification_report(gold, guess, output_dict=True)
    types = {key: value["f1-score"] for key, value in report.items() if not key.endswith(" avg")}
    assert {key: scores[f"F1_{key}"] for key in types} == {k: pytest.approx(100 * v) for k, v in types.items()}


def test_a_large_random_corpus_like_seqeval():
    rng = random.Random(1)
    gold = [[rng.choice(TAGS) for _ in range(rng.randint(1, 30))] for _ in range(500)]
    guess = [[tag if rng.random() < 0.7 else rng.choice(TAGS) for tag in tags] for tags in gold]
    counts = EntityCounts(gold, guess)
    assert counts.scores()["F1"] == pytest.approx(100 * seqeval.metrics.f1_score(gold, guess), abs=1e-9)
    rows = [
        (len(set(get_entities(a)) & set(get_entities(b))), len(get_entities(b)), len(get_entities(a)))
        for a, b in zip(gold, guess, strict=True)
    ]
    assert counts.by_sentence.tolist() == [list(row) for row in rows]


def test_no_entities_at_all():
    assert EntityCounts([["O", "O"]], [["O", "O"]]).scores() == {"precision": 0.0, "recall": 0.0, "F1": 0.0}
    assert EntityCounts([], []).by_sentence.shape == (0, 3)


def test_not_a_tag():
    with pytest.raises(ValueError, match="'PER' is no IOB2 tag"):
        EntityCounts([["PER"]], [["O"]])


def test_sentences_must_match():
    with pytest.raises(ValueError, match="differ in number"):
        EntityCounts([["O", "O"]], [["O"]])


def test_token_f1_by_hand():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O"], ["B-LOC"]]
    guess = [["I-PER", "B-PER", "B-LOC", "O"], ["O"], ["B-ORG"]]
    # B and I do not matter: both PER tokens are right; one LOC too many, one missed, one of the wrong class.
    assert token_counts(gold, guess).tolist() == [[2, 3, 3], [0, 0, 0], [0, 1, 1]]
    assert f1_scores(2, 4, 4) == {"precision": 50.0, "recall": 50.0, "F1": 50.0}


def test_attachment_by_hand():
    # Of five words (punctuation is one of them) four have the right head, three also the right relation.
    scores = attachment(
        np.array([2, 0, 2, 3, 2]), np.array([1, 0, 3, 4, 5]), np.array([2, 0, 2, 2, 2]), np.array([1, 0, 2, 4, 5])
    )
    assert scores == {"UAS": 80.0, "LAS": 60.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat, a dog and an owl!", "cat dog and owl"),
        ("U.S.A.", "usa"),
        ("  Theatre (an)  ", "theatre"),
        ("a-b", "ab"),
        ("the-end", "theend"),
        ("10%", "10"),
        ("naïve «the» école", "naïve « » école"),
        ("在1990年，", "在1990年，"),
        ("the", ""),
    ],
)
def test_normalisation_by_hand(text, expected):
    # Punctuation goes before articles do: "the-end" becomes one word and keeps its "the"; only ASCII is punctuation.
    assert normalise_answer(text) == expected


@pytest.mark.parametrize(
    ("guess", "answers", "f1", "exact"),
    [
        ("the Eiffel Tower", ["Eiffel tower."], 100.0, 100.0),
        ("tower", ["Eiffel Tower"], 200 / 3, 0.0),
        ("Eiffel Tower in Paris", ["Eiffel Tower"], 200 / 3, 0.0),
        ("x", ["y", "x y"], 200 / 3, 0.0),
        ("b b c", ["b c c"], 200 / 3, 0.0),
        ("Rome", ["Paris"], 0.0, 0.0),
        # The script of version 1.1 gives no overlap to answers of which nothing remains, but they are equal.
        ("the", ["a"], 0.0, 100.0),
        ("", ["a"], 0.0, 100.0),
        ("", ["word"], 0.0, 0.0),
        # Best F1 and best match may come from different answers.
        ("one two", ["one two three", "two one"], 100.0, 0.0),
    ],
)
def test_answers_by_hand(guess, answers, f1, exact):
    assert answer_scores(guess, answers) == (pytest.approx(f1), exact)
