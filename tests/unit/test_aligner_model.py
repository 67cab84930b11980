"""The aligner's model and symmetrisation: by hand, against plain implementations, and what must never change them."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from crossalign.alignment import kernels
from crossalign.alignment.bitext import read_bitext
from crossalign.alignment.kernels import Workers
from crossalign.alignment.links import METHODS, parse_links, print_links, symmetrise
from crossalign.alignment.model import FLOOR, Aligner, Options
from crossalign.runtime.errors import UserError

BOOKS = ["das haus ||| the house", "das buch ||| the book"]
words = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6).map(" ".join)
corpora = st.lists(st.tuples(words, words).map(" ||| ".join), min_size=1, max_size=6)
FULL = Options(favour_diagonal=True, optimise_tension=True, variational_bayes=True)


def bitext_of(lines):
    return read_bitext([line.encode() for line in lines], "text")


def aligner_of(lines, options, threads=1, budget_mb=64.0):
    return Aligner(bitext_of(lines), options, Workers(threads), budget_mb)


def probabilities(aligner):
    """{(source word, target word): probability}, with None for the null word."""
    table, bitext = aligner.table, aligner.bitext
    source, target = ([word.decode() for word in side.words] for side in (bitext.source, bitext.target))
    found = {(None, word): float(p) for word, p in zip(target, aligner.null_prob, strict=True)}
    for number, word in enumerate(source):
        for entry in range(table.row_start[number], table.row_start[number + 1]):
            found[word, target[table.row_target[entry]]] = float(aligner.prob[entry])
    return found


def test_one_em_step_with_diagonal_and_null_word_by_hand():
    # exp(-tension / 2) = 1/4: a word takes 0.8 of 0.92 from its own place and 0.2 from the other one.
    aligner = aligner_of(BOOKS, Options(favour_diagonal=True, tension=2 * math.log(4)))
    step = aligner.iterate()
    p = probabilities(aligner)
    assert (p["das", "the"], p["das", "house"], p["das", "book"]) == pytest.approx((0.8, 0.1, 0.1))
    assert (p["haus", "the"], p["haus", "house"]) == pytest.approx((0.2, 0.8))
    assert (p[None, "the"], p[None, "house"], p[None, "book"]) == pytest.approx((0.5, 0.25, 0.25))
    assert step.unlinked == pytest.approx(4 * 0.08)
    assert step.likelihood == pytest.approx(4 * math.log(1e-9))


def plain_training(lines, options, updates):
    """The equations with dictionaries and sums term by term: probabilities, tension and links."""
    pairs = [[side.split() for side in line.split("|||")] for line in lines]
    target_words = sum(len(target) for _, target in pairs)
    prob, tension = defaultdict(lambda: FLOOR), options.tension

    def weights(source, j, m):
        n = len(source)
        if not options.favour_diagonal:
            return [1 / (n + options.use_null)] * n, 1 / (n + 1) if options.use_null else 0.0
        raw = [math.exp(-tension * abs(i / n - j / m)) for i in range(1, n + 1)]
        share = [(1 - options.p0) * w / sum(raw) for w in raw]
        return share, options.p0 if options.use_null else 0.0

    for number in range(updates):
        counts, feature = defaultdict(float), 0.0
        for source, target in pairs:
            for j, word in enumerate(target, 1):
                share, null = weights(source, j, len(target))
                joint = [w * prob[s, word] for w, s in zip(share, source, strict=True)]
                total = sum(joint) + null * prob[None, word]
                counts[None, word] += null * prob[None, word] / total
                for i, (s, p) in enumerate(zip(source, joint, strict=True), 1):
                    counts[s, word] += p / total
                    feature -= abs(i / len(source) - (j - 1) / len(target)) * p / total
        if options.favour_diagonal and options.optimise_tension and number > 0:
            for _ in range(8):
                expected = 0.0
                for source, target in pairs:
                    n, m = len(source), len(target)
                    for j in range(1, m + 1):
                        raw = [(abs(i / n - j / m), math.exp(-tension * abs(i / n - j / m))) for i in range(1, n + 1)]
                        expected -= sum(d * w for d, w in raw) / sum(w for _, w in raw)
                tension = min(max(tension + 20 * (feature - expected) / target_words, 0.1), 14)
        totals = defaultdict(float)
        alpha = options.alpha if options.variational_bayes else 0.0
        for (s, _), value in counts.items():
            totals[s] += value + alpha
        for key, value in counts.items():
            if key[0] is None and not options.use_null:
                continue
            total = totals[key[0]]
            prob[key] = math.exp(digamma(value + alpha) - digamma(total)) if alpha else value / total
    return dict(prob), tension


@settings(deadline=None, max_examples=40)
@given(corpora, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_training_equals_the_plain_implementation(lines, diagonal, tune, bayes, null):
    options = Options(
        favour_diagonal=diagonal, optimise_tension=tune, variational_bayes=bayes, use_null=null, iterations=4
    )
    aligner = aligner_of(lines, options)
    aligner.train()
    expected, tension = plain_training(lines, options, updates=3)
    assert aligner.tension == pytest.approx(tension, rel=1e-9)
    found = probabilities(aligner)
    for key, value in found.items():
        if key[0] is not None or null:
            assert value == pytest.approx(expected[key], rel=1e-7, abs=1e-30), key


def random_corpus(pairs, seed=0):
    """Lines in which word k is translated by word k, shuffled a little."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(pairs):
        chosen = rng.zipf(1.4, rng.integers(1, 15)) % 300
        other = chosen[np.argsort(np.arange(len(chosen)) + rng.normal(0, 1, len(chosen)))]
        lines.append(" ".join(f"s{k}" for k in chosen) + " ||| " + " ".join(f"t{k}" for k in other))
    return lines


def test_threads_tasks_and_memory_change_nothing(monkeypatch):
    lines = random_corpus(400)
    results = []
    for threads, budget, task in ((1, 64.0, 1 << 20), (2, 64.0, 500), (5, 0.01, 3000), (1, 0.002, 1 << 20)):
        monkeypatch.setattr("crossalign.alignment.model.TASK_CELLS", task)
        aligner = aligner_of(lines, FULL, threads, budget)
        links = aligner.train()
        blocks = len(aligner.table.blocks)
        results.append(
            (blocks, aligner.prob.tobytes(), aligner.tension, links.source_of.tobytes(), links.scores.tobytes())
        )
    assert [result[0] > 1 for result in results] == [False, False, True, True]
    assert all(result[1:] == results[0][1:] for result in results)


def test_wide_rows_use_wider_cells():
    lines = ["x ||| " + " ".join(f"w{k}" for k in range(start, start + 900)) for start in range(0, 66_600, 900)]
    aligner = aligner_of([*lines, "x x ||| w1 w2"], Options())
    assert aligner.table.cells.dtype == np.uint32
    assert np.array_equal(aligner.table.row_target, np.arange(66_600))
    links = aligner.train()
    assert set(links.source_of.tolist()) <= {-1, 0, 1}


def test_kernels_compile_where_nothing_can_be_cached(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError("read-only")

    # Numba tries each of its folders with a temporary file.
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    made = kernels.kernel(lambda x: x + 1)
    assert made(2) == 3
    assert not made.stats.cache_path


NEIGHBOURS = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
link_sets = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=20).map(lambda links: sorted(set(links)))
sentences = st.lists(st.tuples(link_sets, link_sets), min_size=1, max_size=4)


def link_set(sentences_):
    text = [" ".join(f"{i}-{j}" for i, j in links).encode() for links in sentences_]
    return parse_links(text, "links")


def by_sets(forward, reverse, method):
    """The published heuristics, written with sets; links are visited in the order of source, then target."""
    forward, reverse = set(forward), set(reverse)
    if method == "union":
        return forward | reverse
    chosen = forward & reverse
    if method == "intersection":
        return chosen

    def free(link):
        return link[0] not in {i for i, _ in chosen}, link[1] not in {j for _, j in chosen}

    grown = True
    while grown:
        grown = False
        for i, j in sorted((forward | reverse) - chosen):
            near = any((i + a, j + b) in chosen for a, b in NEIGHBOURS)
            if near and any(free((i, j))):
                chosen.add((i, j))
                grown = True
    if method != "grow-diag":
        enough = any if method == "grow-diag-final" else all
        for direction in (forward, reverse):
            for link in sorted(direction - chosen):
                if enough(free(link)):
                    chosen.add(link)
    return chosen


@given(sentences, st.sampled_from(METHODS))
def test_equals_the_plain_implementation(pairs, method):
    forward, reverse = [list(side) for side in zip(*pairs, strict=True)]
    made = symmetrise(link_set(forward), link_set(reverse), method)
    assert [made.pairs(k) for k in range(len(made))] == [
        sorted(by_sets(*pair, method)) for pair in zip(forward, reverse, strict=True)
    ]


def test_different_line_counts_are_refused():
    with pytest.raises(UserError, match="forward links have 2 lines, the reverse links 1"):
        symmetrise(link_set([[], []]), link_set([[]]), "union")


@given(st.lists(st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 99)), max_size=6), min_size=1, max_size=5))
def test_links_survive_printing_and_parsing(links):
    text = b"".join(print_links(link_set(links)))
    again = parse_links(text.splitlines(), "links")
    assert [again.pairs(k) for k in range(len(again))] == links
    assert text.decode() == "".join(" ".join(f"{i}-{j}" for i, j in one) + "\n" for one in links)


@pytest.mark.parametrize("line", [b"0-0 1", b"0:0", b"a-b", b"-1-2", b"0-0, 1-1"])
def test_what_is_not_a_list_of_links_is_refused(line):
    with pytest.raises(UserError, match="the file, line 2: .* is not a list of links"):
        parse_links([b"0-0", line], "the file")
