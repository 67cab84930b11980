"""Heads and losses: shapes, initialisation, masking, a step that can be replayed; the CRF against enumeration."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from crossalign.engine import lm_heads as module
from crossalign.engine.heads import (
    BiaffineHead,
    Crf,
    CrfHead,
    Perceptron,
    SequenceHead,
    fit_family,
    iob_constraints,
    mean_cross_entropy,
)
from crossalign.engine.lm_heads import word_loss
from crossalign.tasks import get_task

LABELS = {"pos": None, "ner": ["O", "B-PER", "I-PER"], "parsing": ["det", "nsubj", "root"], "nli": None, "qa": None}


def make_batch(task, batch=3, length=12, words=5, padded=0):
    """Rows of 2, 3, … words; `padded` more places in both directions that nothing may see."""
    generator = torch.Generator().manual_seed(1)
    data = {
        "input_ids": torch.randint(5, 50, (batch, length + padded), generator=generator),
        "attention_mask": torch.zeros(batch, length + padded, dtype=torch.long),
        "word_mask": torch.zeros(batch, words + padded, dtype=torch.long),
    }
    data["attention_mask"][:, :length] = 1
    for row in range(batch):
        data["word_mask"][row, : row + 2] = 1
    for name, field in task.fields.items():
        if field.shape == "scalar":
            data[name] = torch.arange(batch) % 3
        else:
            data[name] = torch.full((batch, words + padded), field.pad)
            for row in range(batch):
                count = row + 2
                data[name][row, :count] = (
                    torch.arange(1, count + 1) if name == "word_starts" else torch.arange(count) % 2
                )
    return data


@pytest.fixture(params=list(LABELS))
def task(request):
    return get_task(request.param, LABELS[request.param])


def drawn_head(task, size, std=1.0):
    """A head for prediction whose every weight has an effect."""
    torch.manual_seed(0)
    head = task.make_head(size, 0.1).eval()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return head


def test_loss_learns(task):
    torch.manual_seed(0)
    head = task.make_head(16, 0.0)
    batch = make_batch(task)
    hidden = torch.randn(3, 12, 16, requires_grad=True)
    optimiser = torch.optim.Adam([*head.parameters(), hidden], lr=0.05)
    losses = []
    for _ in range(80):
        optimiser.zero_grad()
        loss = task.loss(head, hidden, batch)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert all(parameter.grad is not None for parameter in head.parameters())
    assert losses[-1] < 0.3 * losses[0]


def test_padding_changes_nothing(task):
    head = drawn_head(task, 16, std=0.3)
    small, large = make_batch(task), make_batch(task, padded=4)
    hidden = torch.randn(3, 16, 16)
    loss, padded = (task.loss(head, hidden[:, : data["input_ids"].shape[1]], data) for data in (small, large))
    assert loss.item() == pytest.approx(padded.item(), rel=1e-5)
    one, two = (task.predict(head, hidden[:, : data["input_ids"].shape[1]], data) for data in (small, large))
    for name, row in itertools.product(one, range(3)):
        count = row + 2
        seen = (row, slice(12 if task.name == "qa" else count), slice(count + 1))[: one[name].dim()]
        if len(seen) > 1:
            torch.testing.assert_close(one[name][seen], two[name][seen], atol=1e-5, rtol=0)


class Caller(torch.nn.Module):
    def __init__(self, task, head):
        super().__init__()
        self.task, self.head = task, head

    def forward(self, hidden, batch):
        return self.task.loss(self.head, hidden, batch)


def test_no_shape_and_no_value_reaches_the_host(task):
    # Fake tensors have no values: asking for one, or for a shape that depends on one, is an error.
    caller = Caller(task, task.make_head(16, 0.1).train())
    batch = make_batch(task)
    with FakeTensorMode(allow_non_fake_inputs=False) as mode:
        fake = {name: mode.from_tensor(value) for name, value in batch.items()}
        parameters = {name: mode.from_tensor(value) for name, value in caller.named_parameters()}
        states = mode.from_tensor(torch.randn(3, 12, 16)).requires_grad_()
        loss = torch.func.functional_call(caller, parameters, (states, fake))
        assert loss.shape == ()
        torch.autograd.grad(loss, states)


def test_precision(task):
    """The loss is always in fp32; predictions are as exact as the head's weights, whatever the encoder computed in."""
    head, hidden, batch = drawn_head(task, 16), torch.randn(3, 12, 16), make_batch(task)
    assert task.loss(head, hidden.bfloat16(), batch).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert task.loss(head, hidden, batch).dtype == torch.float32
        outputs = task.predict(head, hidden, batch)
    plain = task.predict(head, hidden, batch)
    assert all(torch.equal(outputs[name], plain[name]) for name in plain)


def test_mean_cross_entropy():
    scores, targets = torch.randn(2, 5, 4), torch.tensor([[0, 1, -100, 3, -100], [2, -100, -100, 1, 0]])
    expected = functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
    assert torch.allclose(mean_cross_entropy(scores, targets), expected)
    # Nothing to learn from is zero, not NaN.
    assert mean_cross_entropy(scores, torch.full((2, 5), -100)).item() == 0.0


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_the_classifier_of_sequences_is_the_librarys_with_its_dropout(family):
    names = {"bert": "BertForSequenceClassification", "xlm-roberta": "XLMRobertaForSequenceClassification"}
    import transformers

    config = transformers.AutoConfig.for_model(
        family, vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        num_labels=3, hidden_dropout_prob=0.5,
    )  # fmt: skip
    theirs = getattr(transformers, names[family])(config).train()
    dense, out = (theirs.bert.pooler.dense, theirs.classifier) if family == "bert" else (
        theirs.classifier.dense, theirs.classifier.out_proj
    )  # fmt: skip
    head = SequenceHead(16, 3, 0.5).train()
    fit_family(head, family, {"pooler.dense.weight": dense.weight, "pooler.dense.bias": dense.bias})
    assert torch.equal(head.pooler.weight, dense.weight) == (family == "bert")
    head.pooler.load_state_dict(dense.state_dict())
    head.classifier.load_state_dict(out.state_dict())
    states = torch.randn(4, 5, 16, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)
    got = head(states)
    torch.manual_seed(2)
    want = theirs.classifier(theirs.dropout(theirs.bert.pooler(states)) if family == "bert" else states)
    torch.testing.assert_close(got, want)


def test_initialisation_of_the_parser():
    torch.manual_seed(0)
    head = BiaffineHead(768, 37, 0.1)
    assert head.arc.shape == (501, 500) and not head.arc.any()
    assert head.label.shape == (201, 37, 201) and not head.label.any()
    for perceptron, size in ((head.arc_head, 500), (head.label_dependent, 200)):
        weight = perceptron.linear.weight
        assert weight.shape == (size, 768) and not perceptron.linear.bias.any()
        assert torch.allclose(weight @ weight.T, torch.eye(size), atol=1e-4)
    assert BiaffineHead(64, 5, 0.1).arc.shape == (65, 64)


def test_perceptron_drops_the_same_neurons_everywhere():
    torch.manual_seed(0)
    perceptron = Perceptron(8, 200, 0.4).train()
    result = perceptron(torch.randn(2, 6, 8))
    dropped = result == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert 0.25 < dropped[:, 0].float().mean() < 0.55
    assert not torch.equal(dropped[0], dropped[1])
    plain = perceptron.eval()(torch.tensor([[[1.0] + [0.0] * 7]]))
    expected = functional.leaky_relu(perceptron.linear.weight[:, 0], 0.1)
    assert torch.allclose(plain[0, 0], expected, atol=1e-6)


def test_biaffine_scores_are_the_written_out_formula():
    torch.manual_seed(0)
    head = BiaffineHead(6, 3, 0.0).eval()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    states = torch.randn(1, 5, 6)
    starts, mask = torch.tensor([[1, 3]]), torch.tensor([[1, 1]])
    arcs, dependents, nodes = head(states, starts, mask)
    everywhere = head.labels_everywhere(dependents, nodes)
    at_gold = head.labels_at(dependents, nodes, torch.tensor([[2, 0]]))
    places = [0, 1, 3]
    for word, other in itertools.product(range(2), range(3)):
        vector, partner = states[:, places[word + 1]], states[:, places[other]]
        left = torch.cat([head.arc_dependent(vector[None])[0, 0], torch.ones(1)])
        torch.testing.assert_close(arcs[0, word, other], left @ head.arc @ head.arc_head(partner[None])[0, 0])
        left = torch.cat([head.label_dependent(vector[None])[0, 0], torch.ones(1)])
        right = torch.cat([head.label_head(partner[None])[0, 0], torch.ones(1)])
        expected = torch.stack([left @ head.label[:, label] @ right for label in range(3)])
        torch.testing.assert_close(everywhere[0, word, other], expected, atol=1e-4, rtol=1e-4)
    assert torch.allclose(at_gold[0, 0], everywhere[0, 0, 2], atol=1e-5)
    assert torch.allclose(at_gold[0, 1], everywhere[0, 1, 0], atol=1e-5)


def test_parser_weights_are_log_products_of_probabilities(monkeypatch):
    task = get_task("parsing", ["a", "b", "c"])
    head, batch, states = drawn_head(task, 6), make_batch(task), torch.randn(3, 12, 6)
    arcs, dependents, nodes = head(states, batch["word_starts"], batch["word_mask"])
    product = arcs.softmax(-1).unsqueeze(-1) * head.labels_everywhere(dependents, nodes).softmax(-1)
    whole = task.predict(head, states, batch)
    assert torch.allclose(whole["weights"].exp(), product.max(-1).values, atol=1e-5)
    # Padding is no head: its probability is 0.
    likely = product.max(-1).values > 1e-30
    assert torch.equal(whole["labels"].long()[likely], product.argmax(-1)[likely])
    # In parts, as for long sentences, it is the same.
    monkeypatch.setattr("crossalign.tasks.parsing.LARGEST", 1)
    parts = task.predict(head, states, batch)
    assert torch.allclose(whole["weights"], parts["weights"], atol=1e-5)
    assert torch.equal(whole["labels"], parts["labels"])


# ---- conditional random field

IOB = ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]


def make_field(labels, lengths, seed, width=None):
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
    crf, emissions, mask = make_field(labels, lengths, seed)
    partition = crf.log_partition(emissions, mask).detach()
    paths, best = crf.viterbi(emissions, mask)
    gold = torch.randint(labels, mask.shape, generator=torch.Generator().manual_seed(seed))
    likelihood = crf.log_likelihood(emissions, gold.masked_fill(~mask, -100), mask).detach()
    for row, length in enumerate(lengths):
        scores = all_scores(crf, emissions[row], length)
        expected = math.log(sum(math.exp(score) for score in scores.values()))
        assert float(partition[row]) == pytest.approx(expected, abs=1e-9)
        winner = max(scores, key=scores.get)
        assert tuple(paths[row, :length].tolist()) == winner
        assert float(best[row]) == pytest.approx(scores[winner], abs=1e-9)
        assert not paths[row, length:].any()
        score = scores[tuple(gold[row, :length].tolist())]
        assert float(likelihood[row]) == pytest.approx(score - float(partition[row]), abs=1e-9)


def test_iob_constraints_say_what_may_follow():
    first, steps = iob_constraints(IOB)
    assert [IOB[i] for i in first.nonzero().flatten()] == ["I-LOC", "I-PER"]
    allowed = {(a, b) for i, a in enumerate(IOB) for j, b in enumerate(IOB) if not steps[i, j]}
    inside = {("B-LOC", "I-LOC"), ("I-LOC", "I-LOC"), ("B-PER", "I-PER"), ("I-PER", "I-PER")}
    assert allowed == inside | set(itertools.product(IOB, IOB[:3]))
    # A class without B- begins with I-.
    assert not any(each.any() for each in iob_constraints(["O", "I-LOC"]))


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=20)
def test_constrained_best_path_by_enumeration(seed, length):
    crf, emissions, mask = make_field(len(IOB), [length], seed)
    limits = iob_constraints(IOB)
    path, score = crf.viterbi(emissions, mask, limits)
    sound = {
        path: score
        for path, score in all_scores(crf, emissions[0], length).items()
        if not limits[0][path[0]] and not any(limits[1][a, b] for a, b in itertools.pairwise(path))
    }
    winner = max(sound, key=sound.get)
    assert tuple(path[0].tolist()) == winner and float(score[0]) == pytest.approx(sound[winner])


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


def make(rows=23, size=50, hidden=8, bias=True):
    generator = torch.Generator().manual_seed(1)
    x, words = (torch.randn(n, hidden, generator=generator, dtype=torch.float64) for n in (rows, size))
    offsets = torch.randn(size, generator=generator, dtype=torch.float64) if bias else None
    targets = torch.randint(0, size, (rows,), generator=generator)
    targets[[2, 7]] = -100
    return [t if t is None else t.requires_grad_() for t in (x, words, offsets)], targets


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("most", [1 << 20, 120, 1])
def test_value_and_gradients(monkeypatch, bias, most):
    """Also when the rows come in parts, the smallest of one row each; the loss is scaled as by the engine."""
    monkeypatch.setitem(module._MOST, "cpu", most)
    inputs, targets = make(bias=bias)
    given = [t for t in inputs if t is not None]
    loss = word_loss(*inputs, targets)
    got = torch.autograd.grad(3 * loss, given)
    expected = functional.cross_entropy(functional.linear(*inputs), targets, ignore_index=-100)
    torch.testing.assert_close(loss.double(), expected, atol=1e-6, rtol=1e-6)
    for one, other in zip(got, torch.autograd.grad(3 * expected, given), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
