"""The CRF against enumeration of all paths, and what padding and IOB2 mean for it."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.engine.crf import Constraints, Crf, CrfHead, iob_constraints

IOB = ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]


def make(labels, lengths, seed, width=None):
    """A field with large random weights, emissions in double precision, and the mask of the given lengths."""
    generator = torch.Generator().manual_seed(seed)
    crf = Crf(labels).double()
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    width = width or max(lengths)
    emissions = 2 * torch.randn(len(lengths), width, labels, generator=generator, dtype=torch.float64)
    return crf, emissions, torch.arange(width) < torch.tensor(lengths)[:, None]


@torch.no_grad()
def path_score(crf, emissions, path):
    score = float(crf.start[path[0]] + crf.end[path[-1]])
    score += sum(float(emissions[place, label]) for place, label in enumerate(path))
    return score + sum(float(crf.transitions[a, b]) for a, b in itertools.pairwise(path))


def all_scores(crf, emissions, length):
    labels = len(crf.start)
    return {path: path_score(crf, emissions, path) for path in itertools.product(range(labels), repeat=length)}


small = given(
    labels=st.integers(1, 4), lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3), seed=st.integers(0, 10**6)
)


@small
@settings(max_examples=40)
def test_partition_likelihood_and_best_path_by_enumeration(labels, lengths, seed):
    crf, emissions, mask = make(labels, lengths, seed)
    partition = crf.log_partition(emissions, mask).detach()
    paths, best = crf.viterbi(emissions, mask)
    for row, length in enumerate(lengths):
        scores = all_scores(crf, emissions[row], length)
        expected = math.log(sum(math.exp(score) for score in scores.values()))
        assert float(partition[row]) == pytest.approx(expected, abs=1e-9)
        winner = max(scores, key=scores.get)
        assert tuple(paths[row, :length].tolist()) == winner
        assert float(best[row]) == pytest.approx(scores[winner], abs=1e-9)
        assert not paths[row, length:].any()
    gold = torch.randint(labels, mask.shape, generator=torch.Generator().manual_seed(seed))
    likelihood = crf.log_likelihood(emissions, gold.masked_fill(~mask, -100), mask).detach()
    for row, length in enumerate(lengths):
        score = path_score(crf, emissions[row], gold[row, :length].tolist())
        assert float(likelihood[row]) == pytest.approx(score - float(partition[row]), abs=1e-9)


def test_probabilities_of_all_paths_sum_to_one():
    crf, emissions, mask = make(3, [4], seed=5)
    paths = torch.tensor(list(itertools.product(range(3), repeat=4)))
    likelihood = crf.log_likelihood(emissions.expand(81, -1, -1), paths, mask.expand(81, -1))
    assert float(likelihood.detach().exp().sum()) == pytest.approx(1)


@small
@settings(max_examples=25)
def test_padding_changes_nothing(labels, lengths, seed):
    crf, emissions, mask = make(labels, lengths, seed, width=6)
    noisy = emissions.masked_fill(~mask[..., None], 1e3).requires_grad_()
    gold = torch.zeros(mask.shape, dtype=torch.long).masked_fill(~mask, -100)
    together = crf.log_likelihood(noisy, gold, mask)
    paths, best = crf.viterbi(noisy, mask)
    for row, length in enumerate(lengths):
        alone = slice(row, row + 1), slice(0, length)
        single = crf.log_likelihood(emissions[alone], gold[alone], mask[alone])
        assert torch.allclose(single, together[row])
        path, score = crf.viterbi(emissions[alone], mask[alone])
        assert torch.equal(path[0], paths[row, :length])
        assert torch.allclose(score, best[row])
    together.sum().backward()
    assert not noisy.grad[~mask].any()


def test_gradients():
    crf, emissions, mask = make(3, [3, 1, 2], seed=1)
    gold = torch.tensor([[0, 2, 1], [1, -100, -100], [2, 2, -100]])
    assert torch.autograd.gradcheck(lambda e: crf.log_likelihood(e, gold, mask), emissions.requires_grad_())


def test_long_sentences_with_strong_emissions_stay_finite():
    crf, emissions, mask = make(4, [300], seed=2)
    labels = emissions.argmax(dim=-1)
    strong = 500.0 * torch.nn.functional.one_hot(labels, 4)
    path, _ = crf.viterbi(strong, mask)
    assert torch.equal(path, labels)
    assert float(crf.log_likelihood(strong, path, mask).detach()) == pytest.approx(0, abs=1e-9)
    likelihood = crf.float().log_likelihood(strong.float(), (labels + 1) % 4, mask)
    assert float(likelihood.detach()) == pytest.approx(-500 * 300, rel=0.05)


def test_iob_constraints_say_what_may_follow():
    constraints = iob_constraints(IOB)
    assert [IOB[i] for i in constraints.start.nonzero().flatten()] == ["I-LOC", "I-PER"]
    allowed = {(a, b) for i, a in enumerate(IOB) for j, b in enumerate(IOB) if not constraints.steps[i, j]}
    inside = {("B-LOC", "I-LOC"), ("I-LOC", "I-LOC"), ("B-PER", "I-PER"), ("I-PER", "I-PER")}
    assert allowed == inside | set(itertools.product(IOB, IOB[:3]))


def test_a_class_without_b_begins_with_i():
    constraints = iob_constraints(["O", "I-LOC"])
    assert not constraints.start.any() and not constraints.steps.any()


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=20)
def test_constrained_best_path_by_enumeration(seed, length):
    crf, emissions, mask = make(len(IOB), [length], seed)
    constraints = iob_constraints(IOB)
    path, score = crf.viterbi(emissions, mask, constraints)
    scores = all_scores(crf, emissions[0], length)
    sound = {path: score for path, score in scores.items() if is_sound(path, constraints)}
    winner = max(sound, key=sound.get)
    assert tuple(path[0].tolist()) == winner
    assert float(score[0]) == pytest.approx(sound[winner])


def is_sound(path, constraints: Constraints):
    return not constraints.start[path[0]] and not any(constraints.steps[a, b] for a, b in itertools.pairwise(path))


def test_constraints_bind_only_the_decoding():
    torch.manual_seed(0)
    head = CrfHead(4, IOB, 0.0)
    states = torch.zeros(1, 3, 4)
    places, mask = torch.tensor([[1, 2]]), torch.ones(1, 2, dtype=torch.bool)
    with torch.no_grad():
        head.classifier.bias.copy_(torch.tensor([0.0, 0.0, 0.0, 9.0, 0.0]))
    # I-LOC is by far the best everywhere, but may not come first.
    assert head.best(states, places, mask).tolist() == [[1, 3]]
    loss = head.loss(states, places, torch.tensor([[3, 3]]), mask)
    assert 0 < float(loss.detach()) < 1
