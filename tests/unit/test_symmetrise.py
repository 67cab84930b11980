"""Symmetrisation against a plain implementation over sets, and its properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossalign.alignment.kernels import Workers
from crossalign.alignment.links import METHODS, parse_links, print_links, symmetrise
from crossalign.runtime.errors import UserError

NEIGHBOURS = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
link_sets = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=20).map(lambda links: sorted(set(links)))
sentences = st.lists(st.tuples(link_sets, link_sets), min_size=1, max_size=4)


def link_set(sentences_):
    text = [" ".join(f"{i}-{j}" for i, j in links).encode() for links in sentences_]
    return parse_links(text, "links")


def combined(forward, reverse, method):
    """One sentence pair through the code under test."""
    return set(symmetrise(link_set([forward]), link_set([reverse]), method).pairs(0))


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


def test_by_hand():
    # 1-1 touches 0-0 and frees a word on both sides; 4-4 touches nothing; 4-0 meets a linked target word.
    forward, reverse = [(0, 0), (1, 1), (4, 4)], [(0, 0), (4, 0)]
    assert combined(forward, reverse, "grow-diag") == {(0, 0), (1, 1)}
    assert combined(forward, reverse, "grow-diag-final-and") == {(0, 0), (1, 1), (4, 4)}
    assert combined(forward, reverse, "grow-diag-final") == {(0, 0), (1, 1), (4, 4)}
    assert combined(forward[:2], reverse, "grow-diag-final") == {(0, 0), (1, 1), (4, 0)}
    assert combined(forward[:2], reverse, "grow-diag-final-and") == {(0, 0), (1, 1)}


def test_any_number_of_threads_gives_the_same(monkeypatch):
    monkeypatch.setattr("crossalign.alignment.links._TASK_LINKS", 40)
    forward = [[(k % 5, k % 3), (k % 4, 6)] for k in range(200)]
    reverse = [[(k % 5, k % 3), (k % 7, 5)] for k in range(200)]
    results = []
    for threads in (1, 3):
        with Workers(threads) as workers:
            made = symmetrise(link_set(forward), link_set(reverse), "grow-diag-final", workers)
        results.append(b"".join(print_links(made)))
    assert results[0] == results[1]
    assert results[0].count(b"\n") == 200


def test_different_line_counts_and_unknown_methods_are_refused():
    with pytest.raises(UserError, match="forward links have 2 lines, the reverse links 1"):
        symmetrise(link_set([[], []]), link_set([[]]), "union")

    with pytest.raises(UserError, match="'grow'; choose one of intersection, union, grow-diag"):
        symmetrise(link_set([[]]), link_set([[]]), "grow")


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
