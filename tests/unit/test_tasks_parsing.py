"""Parsing: trees against brute force and networkx; examples, decoding, scores, words beyond the length."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers_for_tests import bert_tokenizer

from crossalign.engine import trees
from crossalign.engine.trees import are_trees, decode_trees
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task


def decode(weights):
    """The heads of one sentence; they are a tree whose root has one child."""
    (heads,) = decode_trees([weights])
    assert len(heads) == 0 or (are_trees(heads[None])[0] and (heads == 0).sum() == 1)
    return heads.tolist()


def weight_of(weights, heads):
    return sum(weights[word, head] for word, head in enumerate(heads))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 14, 24])
def test_no_tree_weighs_more(count):
    rng = np.random.default_rng(count)
    # Nested cycles: words prefer near neighbours, so that contractions pile up.
    places = np.arange(count)
    near = -np.abs(places[:, None] - places[None, :]) + rng.normal(scale=0.4, size=(count, count))
    plain = [rng.normal(size=(count, count + 1)) for _ in range(20)]
    ties = [rng.integers(0, 3, size=(count, count + 1)).astype(float) for _ in range(20)]
    rooted = plain[0] + 5.0 * (np.arange(count + 1) == 0)
    for weights in (*plain, *ties, rooted, 100 * plain[1], np.concatenate([rng.normal(size=(count, 1)), near], axis=1)):
        graph = networkx.DiGraph()
        # Arcs from the root so dear that one must do.
        graph.add_edges_from(
            (head, word, {"weight": weights[word - 1, head] - (1e5 if head == 0 else 0)})
            for word in range(1, count + 1)
            for head in range(count + 1)
            if head != word
        )
        tree = networkx.maximum_spanning_arborescence(graph)
        best = sum(weights[word - 1, head] for head, word in tree.edges)
        assert weight_of(weights, decode(weights)) == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 1.0]))
def test_always_a_tree_with_one_root(count, seed, holes):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(count, count + 1))
    weights[rng.random(size=weights.shape) < holes] = rng.choice([np.nan, -np.inf, np.inf])
    decode(weights)


def test_odd_input():
    weights = np.array([[-np.inf, 0.0, 1.0, np.nan], [0.5, np.nan, 0.0, -np.inf], [-np.inf, 2.0, np.nan, 0.0]])
    assert decode(weights) == [2, 0, 1]
    assert decode(np.zeros((0, 1))) == [] and decode(np.zeros((1, 2))) == [0] and decode_trees([]) == []


def test_many_sentences_of_mixed_lengths_are_decoded_as_each_alone(monkeypatch):
    monkeypatch.setattr(trees, "_TOGETHER", 200)
    rng = np.random.default_rng(7)
    sentences = [rng.normal(size=(count, count + 1)) for count in rng.integers(0, 9, 300)]
    sentences[5] = np.full((4, 5), -np.inf)
    sentences[5][1, 3] = np.nan
    kept = [weights.copy() for weights in sentences]
    for weights, heads in zip(sentences, decode_trees(sentences), strict=True):
        assert heads.tolist() == decode(weights)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(sentences, kept, strict=True))


TREE = {
    "id": "1",
    "words": ["the", "cat", "sat", "."],
    "upos": ["DET", "NOUN", "VERB", "PUNCT"],
    "heads": [2, 3, 0, 3],
    "relations": ["det", "nsubj", "root", "punct"],
}
LONG = {
    "id": "2",
    "words": ["cat"] * 12,
    "upos": ["NOUN"] * 12,
    "heads": [0, 1, 12, 3, 4, 5, 6, 7, 8, 9, 10, 2],
    "relations": ["root"] + ["dep"] * 11,
}


def task_for(*records):
    return get_task("parsing").with_labels_of(records)


def outputs_for(task, examples, heads, labels, noise=0.0):
    """What a model would give that believes in these heads and labels; padded as in a batch."""
    rng = np.random.default_rng(0)
    outputs = []
    for example, head, label in zip(examples, heads, labels, strict=True):
        count = len(example["word_starts"])
        weights = np.full((count + 3, count + 4), -9.0, dtype=np.float32) + noise * rng.normal(
            size=(count + 3, count + 4)
        )
        best = np.zeros((count + 3, count + 4), dtype=np.uint8)
        weights[count:] = weights[:, count + 1 :] = 99.0
        for word in range(count):
            weights[word, head[word]] = -0.1
            best[word, head[word]] = label[word]
        outputs.append({"weights": weights, "labels": best})
    return outputs


def test_example():
    task = task_for(TREE)
    assert task.labels == ("det", "nsubj", "punct", "root")
    (example,) = task.examples([TREE], bert_tokenizer(), 32)
    assert example["word_starts"] == [1, 2, 3, 4]
    assert example["heads"] == [2, 3, 0, 3] and example["labels"] == [0, 1, 3, 2]


def test_heads_beyond_the_cut_are_not_learnt():
    task = task_for(TREE, LONG)
    (example,) = task.examples([LONG], bert_tokenizer(), 8)
    assert len(example["input_ids"]) == 8 and example["cut"] == 6
    assert example["heads"] == [0, 1, -100, 3, 4, 5]
    assert example["labels"][2] == -100 and example["labels"][1] == task.labels.index("dep")


def test_decode_and_score():
    task = task_for(TREE)
    examples = task.examples([TREE], bert_tokenizer(), 32)
    predictions = task.decode(examples, [TREE], outputs_for(task, examples, [[2, 3, 0, 2]], [[0, 0, 3, 2]]))
    assert predictions == [([2, 3, 0, 2], [0, 0, 3, 2])]
    # Four words: the full stop has the wrong head, the cat the wrong relation.
    scores = task.score([TREE], predictions)
    assert scores == {"UAS": 75.0, "LAS": 50.0, "n": 1, "words": 4, "cut_words": 0, "unseen_labels": 0}
    assert task.details([TREE], predictions) == [{"heads": [2, 3, 0, 2], "labels": [0, 0, 3, 2], "right": [3, 2]}]


def test_words_beyond_the_model_count_as_errors_and_are_reported():
    task = task_for(TREE, LONG)
    examples = task.examples([LONG, TREE], bert_tokenizer(), 8)
    gold = [record["heads"] for record in (LONG, TREE)]
    known = [[task.labels.index(relation) for relation in record["relations"]] for record in (LONG, TREE)]
    outputs = outputs_for(task, examples, [[0, 1, 2, 3, 4, 5], gold[1]], known)
    predictions = task.decode(examples, [LONG, TREE], outputs)
    assert predictions[0][0] == [0, 1, 2, 3, 4, 5] + [-1] * 6
    scores = task.score([LONG, TREE], predictions)
    # Of 16 words all four of the second sentence are right and five of the first: word 3 hangs on one out of sight.
    assert scores["LAS"] == pytest.approx(100 * 9 / 16)
    assert scores["cut_words"] == 6


def test_an_unseen_relation_is_an_error_and_is_reported():
    task = task_for(TREE)
    strange = TREE | {"relations": ["det", "vocative", "root", "punct"]}
    examples = task.examples([strange], bert_tokenizer(), 32)
    assert examples[0]["labels"] == [0, -100, 3, 2] and examples[0]["heads"] == [2, 3, 0, 3]
    predictions = task.decode(examples, [strange], outputs_for(task, examples, [[2, 3, 0, 3]], [[0, 1, 3, 2]]))
    scores = task.score([strange], predictions)
    assert (scores["UAS"], scores["LAS"], scores["unseen_labels"]) == (100.0, 75.0, 1)
    # A cut word with an unseen relation is not right either.
    assert task.score([LONG], [([-1] * 12, [-1] * 12)])["LAS"] == 0.0


def test_read(tmp_path):
    path = tmp_path / "a.conllu"
    rows = zip(TREE["words"], TREE["upos"], TREE["heads"], ["det", "nsubj:pass", "root", "punct"], strict=True)
    lines = [f"{i}\t{w}\t_\t{u}\t_\t_\t{h}\t{r}\t_\t_\n" for i, (w, u, h, r) in enumerate(rows, 1)]
    path.write_text("# sent_id = 1\n" + "".join(lines) + "\n", encoding="utf-8")
    assert get_task("parsing").read(path) == [TREE]
    path.write_text("# sent_id = 1\n1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.conllu, line 2: head '_' is not a number"):
        get_task("parsing").read(path)
