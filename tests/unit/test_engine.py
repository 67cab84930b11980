"""The step engine against plain PyTorch, and its behaviour when memory is short or the loss breaks."""

import logging
import sys

import numpy as np
import pytest
import torch
from tests.engine_toys import ToyTask, all_values, same, toy_encoder, toy_records

from crossalign.engine import ops
from crossalign.engine.batches import Store, Stream
from crossalign.engine.finetune import FineTuning
from crossalign.engine.folders import library_names
from crossalign.engine.layout import Layout
from crossalign.engine.optimiser import AdamW, learning_rates
from crossalign.engine.parts import Part
from crossalign.engine.seeds import torch_seeded
from crossalign.engine.settings import Settings
from crossalign.engine.steps import Engine
from crossalign.engine.task_model import BUDGET, TaskModel, predict_all
from crossalign.runtime.errors import UserError


def tune(
    encoder=None, task=None, records=None, dev=None, epochs=3, batch=8, init="ref", run=True, auxiliary=None, **more
):
    settings = Settings(learning_rate=1e-3, batch=batch, epochs=epochs, selection="last", **more)
    tuning = FineTuning(
        encoder or toy_encoder(), None, task or ToyTask(), records or toy_records(), dev or [], settings, init,
        auxiliary=auxiliary,
    )  # fmt: skip
    if run:
        tuning.run()
    return tuning


def test_equals_a_plain_adamw_loop_over_the_library():
    """100 steps of BertModel with torch.optim.AdamW, clipping and the library's schedule, on padded batches."""
    import transformers

    task, records = ToyTask(), toy_records(50)
    tuning = tune(task=task, records=records, epochs=16, batch=8, run=False, weight_decay=0.01, clip=0.5)
    steps = 16 * 7
    ours = tuning.model.encoder
    theirs = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        ),
        add_pooling_layer=False,
    )  # fmt: skip
    state, names = theirs.state_dict(), library_names(ours)
    for name, value in ours.named_parameters():
        for part, target in zip(value.detach().chunk(len(names[name])), names[name], strict=True):
            state[target].copy_(part)
    head = torch.nn.Linear(16, 3)
    head.load_state_dict(tuning.model.head[1].state_dict())
    named = [*theirs.named_parameters(), *head.named_parameters()]
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for _, p in named if p.dim() > 1], "weight_decay": 0.01},
            {"params": [p for _, p in named if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=1e-3, betas=(0.9, 0.99), eps=1e-8,
    )  # fmt: skip
    schedule = transformers.get_linear_schedule_with_warmup(optimiser, -(-steps // 10), steps)
    parameters = [p for _, p in named]
    losses = []
    for epoch in range(16):
        for members in tuning.stream.epoch(epoch):
            rows = [torch.tensor(records[i]["ids"]) for i in members]
            ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
            labels = torch.where(mask.bool(), ids % 3, -100)
            scores = head(theirs(ids, attention_mask=mask).last_hidden_state)
            loss = torch.nn.functional.cross_entropy(scores.view(-1, 3), labels.view(-1))
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 0.5)
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
    tuning.run()
    np.testing.assert_allclose(tuning.engine.losses.numpy(), losses, rtol=1e-4)
    for name, value in ours.named_parameters():
        expected = torch.cat([state[part] for part in names[name]])
        if name.endswith("qkv.bias"):
            # The key's bias has no effect, so its gradient is rounding noise, which Adam blows up.
            keep = torch.cat([torch.arange(16), torch.arange(32, 48)])
            value, expected = value[keep], expected[keep]
        error = (value - expected).norm() / expected.norm()
        assert error < 1e-5, (name, error)


def test_sliced_vocabulary_gives_the_same_bits():
    """Without clipping, whose norm is summed in another order when the table has other rows."""
    sliced = tune(clip=0.0)
    assert sliced.model.encoder.rows is not None

    class Unsliced(FineTuning):
        def _slice(self, encoder):
            pass

    settings = Settings(learning_rate=1e-3, batch=8, epochs=3, selection="last", clip=0.0)
    full = Unsliced(toy_encoder(), None, ToyTask(), toy_records(), [], settings)
    full.run()
    a, b = all_values(sliced.model), all_values(full.model)
    name = "encoder.embeddings.word.weight"
    rows = sliced.model.encoder.rows
    assert torch.equal(a.pop(name), b[name][rows])
    untouched = torch.ones(60, dtype=torch.bool)
    untouched[rows] = False
    assert torch.equal(b.pop(name)[untouched], toy_encoder().embeddings.word.weight[untouched])
    assert same(a, b)


@pytest.mark.parametrize("micro", [1, 2])
def test_static_shapes_have_the_same_effect(micro):
    """Filling tokens, empty rows of a last small batch, padding to steps of 64: all without influence."""
    exact, static = tune(run=False), tune(run=False)
    static.engine.static, static.engine.micro = True, micro
    exact.run()
    static.run()
    np.testing.assert_allclose(static.engine.losses, exact.engine.losses, rtol=1e-4)
    a, b = all_values(exact.model), all_values(static.model)
    for name in a:
        if "qkv.bias" not in name:
            torch.testing.assert_close(a[name], b[name], atol=1e-4, rtol=1e-3, msg=lambda m, n=name: f"{n}: {m}")


def test_predictions_come_in_order_and_do_not_depend_on_the_batches(monkeypatch):
    encoder, task, records = toy_encoder(), ToyTask(), toy_records(23)
    model = TaskModel(encoder, task.make_head(16, 0.0))
    examples = task.examples(records, None, 9)
    monkeypatch.setitem(BUDGET, "cpu", 1)
    one = predict_all(model, task, examples, "cpu")
    monkeypatch.setitem(BUDGET, "cpu", 100)
    many = predict_all(model, task, examples, "cpu")
    assert len({len(output["labels"]) for output in many}) < len({len(e["input_ids"]) for e in examples})
    for example, a, b in zip(examples, one, many, strict=True):
        length = len(example["input_ids"])
        expected = model.head(encoder(torch.tensor([example["input_ids"]])))[0].argmax(-1)
        assert a["labels"].tolist() == b["labels"][:length].tolist() == expected.tolist()


def test_out_of_memory_halves_the_micro_batch_with_the_same_effect(caplog):
    class Hungry(ToyTask):
        largest = 3

        def loss(self, head, hidden_states, batch):
            if len(batch["labels"]) > self.largest:
                raise torch.OutOfMemoryError("no memory")
            return super().loss(head, hidden_states, batch)

    plain = tune()
    with caplog.at_level(logging.WARNING):
        hungry = tune(task=Hungry())
    assert hungry.engine.micro == 4
    assert "batches of 8 now run in 2 pieces" in caplog.text
    assert "batches of 8 now run in 4 pieces" in caplog.text
    np.testing.assert_allclose(hungry.engine.losses, plain.engine.losses, rtol=1e-4)
    a, b = all_values(plain.model), all_values(hungry.model)
    for name in a:
        if "qkv.bias" not in name:
            torch.testing.assert_close(a[name], b[name], atol=1e-4, rtol=1e-3, msg=lambda m, n=name: f"{n}: {m}")


def test_out_of_memory_with_single_examples():
    class Starving(ToyTask):
        def loss(self, head, hidden_states, batch):
            raise torch.OutOfMemoryError("no memory")

    with pytest.raises(UserError, match="out of memory even with one example at a time"):
        tune(task=Starving())


def test_a_loss_that_is_not_a_number_names_step_rate_and_examples():
    class Breaking(ToyTask):
        def loss(self, head, hidden_states, batch):
            broken = (batch["labels"] == 1).sum() > 3
            return torch.where(broken, torch.nan, super().loss(head, hidden_states, batch))

    records = [{"ids": [6, 9]}] * 20 + [{"ids": [7, 7, 7, 7]}]
    with pytest.raises(UserError) as caught:
        tune(task=Breaking(), records=records, epochs=2)
    text = str(caught.value)
    order = Stream(Store(ToyTask().examples(records, None, 9), ToyTask.fields), 8, 1).epoch(0)
    step = next(i for i, batch in enumerate(order) if 20 in batch)
    assert f"the loss is nan at step {step + 1} (epoch 1, training examples " in text
    assert "training examples " + ", ".join(map(str, order[step])) + ", learning rate" in text


def test_auxiliary_loss_adds_its_weighted_gradient():
    """The gradients of both parts arrive in one buffer: compare with one backward pass over the sum."""
    encoder, task = toy_encoder(), ToyTask()
    with torch_seeded(1, "head"):
        head = task.make_head(16, 0.0)
    first = Store(task.examples(toy_records(8), None, 9), task.fields)
    second = Store([{"input_ids": r["ids"]} for r in toy_records(5, seed=3)], {})

    def squares(encode, batch):
        return (encode().square().mean(-1) * batch["attention_mask"]).sum()

    parts = [Part(first, lambda encode, batch: task.loss(head, encode(), batch), 8), Part(second, squares, 5, 0.01)]
    engine = Engine(encoder, {"head": head}, parts, np.array([1e-3]), AdamW(clip=0.0))
    expected = {}
    reference, other = toy_encoder(), task.make_head(16, 0.0)
    other.load_state_dict(head.state_dict())
    losses = []
    for store, part in ((first, 0), (second, 1)):
        ids = torch.zeros(len(store), 8, dtype=torch.long)
        mask = torch.zeros(len(store), 8, dtype=torch.bool)
        for row, (start, length) in enumerate(zip(store.starts, store.lengths, strict=True)):
            ids[row, :length] = torch.from_numpy(store.ids[start : start + length])
            mask[row, :length] = True
        hidden = reference(ids, mask)
        if part == 0:
            losses.append(task.loss(other, hidden, {"labels": torch.where(mask, ids % 3, -100)}))
        else:
            losses.append(0.01 * (hidden.square().mean(-1) * mask).sum())
    sum(losses).backward()
    expected = {f"encoder.{n}": p.grad for n, p in reference.named_parameters()}
    expected |= {f"head.{n}": p.grad for n, p in other.named_parameters()}
    engine.step(np.arange(8), np.arange(5))
    assert engine.losses[0].item() == pytest.approx(sum(losses).item(), rel=1e-5)
    for name, parameter in engine.arena.parameters.items():
        got = engine.arena.gradients.places[parameter]
        torch.testing.assert_close(got, expected[name], atol=1e-6, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def test_gradients_of_untouched_parameters_are_zero_again():
    """A parameter that one step uses and the next does not must not keep the old gradient."""
    weight = torch.nn.Parameter(torch.zeros(4, 4))
    gradients = ops.Gradients({weight: torch.ones(4, 4)})
    gradients.begin(first=True)
    gradients.collect()
    assert not gradients.places[weight].any()
    gradients.places[weight].fill_(2.0)
    gradients.begin(first=False)
    gradients.collect()
    assert gradients.places[weight].eq(2.0).all(), "a later piece of a step keeps what the first one gave"


def masked(x, dropout, seed, base):
    """A dropout mask that depends on the seed and the base only, as the kernels' own."""
    if dropout == 0:
        return torch.ones_like(x)
    generator = torch.Generator().manual_seed(int(seed) + base)
    return (torch.rand(x.shape, generator=generator) >= dropout).to(x) / (1 - dropout)


class PlainNorms:
    """What `kernels.norms` does, in plain PyTorch."""

    SUMMED_ROWS = 16

    @staticmethod
    def add_norm(x, residual, weight, bias, eps, dropout, seed, base):
        total = residual + x * masked(x, dropout, seed, base)
        y, mean, rstd = torch.native_layer_norm(total, weight.shape, weight, bias, eps)
        return y, total, mean, rstd

    @staticmethod
    def add_norm_backward(dy, total, weight, mean, rstd, dropout, seed, base):
        dresidual, dweight, dbias = torch.ops.aten.native_layer_norm_backward(
            dy, total, weight.shape, mean, rstd, weight, weight, [True, True, True]
        )
        dx = dresidual * masked(dresidual, dropout, seed, base)
        return dx, dresidual, torch.stack([dweight, dbias, dx.sum(0)])[None]

    @staticmethod
    def three_sums(partial, targets, add):
        for target, value, more in zip(targets, partial.sum(0), add, strict=True):
            target.copy_(target + value if more else value)

    @staticmethod
    def row_sums(value, target, add):
        target.copy_(target + value.sum(0) if add else value.sum(0))


@pytest.fixture
def replaced(monkeypatch):
    """The encoder takes the way of a GPU, with kernels in plain PyTorch."""
    monkeypatch.setattr(ops.kernels, "serve", lambda x: True)
    monkeypatch.setattr(ops.kernels, "norms", PlainNorms, raising=False)
    monkeypatch.setitem(sys.modules, "crossalign.engine.kernels.norms", PlainNorms)


def passes(encoder, into, count=1):
    """The loss of a few tokens; its gradients are collected `count` times."""
    ids, positions, layout = (
        torch.tensor([7, 8, 9, 30, 31]),
        torch.tensor([0, 1, 2, 3, 4]),
        Layout(torch.tensor([0, 5]), 5, 5),
    )
    for number in range(count):
        into.begin(first=number == 0)
        weights = torch.linspace(-1, 1, 5 * 16).view(5, 16)
        loss = (encoder.packed(ids, positions, None, layout, into=into) * weights).sum()
        loss.backward()
        into.collect()
    return loss.item()


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("norm", ["post", "pre", "normformer"])
def test_gradients_that_are_written_directly_equal_the_usual_ones(norm, kernels, request):
    if kernels:
        request.getfixturevalue("replaced")
    encoder = toy_encoder(norm=norm).double()
    into = ops.Gradients({p: torch.full_like(p, 5.0) for p in encoder.parameters()})
    loss = passes(encoder, into, 2)
    layout, weights = Layout(torch.tensor([0, 5]), 5, 5), torch.linspace(-1, 1, 5 * 16).view(5, 16)
    usual = (encoder.packed(torch.tensor([7, 8, 9, 30, 31]), torch.arange(5), None, layout) * weights).sum()
    usual.backward()
    assert usual.item() == pytest.approx(loss)
    for name, parameter in encoder.named_parameters():
        got = into.places[parameter] / 2
        torch.testing.assert_close(got, parameter.grad, rtol=1e-8, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


def test_the_gradient_of_a_block_with_dropout_is_that_of_what_was_kept(replaced):
    """Against a difference of losses: the backward pass drops what the forward pass dropped."""
    encoder = toy_encoder(hidden_dropout=0.3).double().train()
    encoder.embeddings.eval()
    into = ops.Gradients({p: torch.zeros_like(p) for p in encoder.parameters()})

    def loss():
        torch.manual_seed(3)
        return passes(encoder, into)

    loss()
    for layer in encoder.layers:
        for parameter in layer.parameters():
            gradient, direction = into.places[parameter].clone(), torch.randn_like(parameter)
            values = []
            for step in (1e-5, -2e-5):
                parameter.data += step * direction
                values.append(loss())
            parameter.data += 1e-5 * direction
            change = (values[0] - values[1]) / 2e-5
            assert change == pytest.approx(float((gradient * direction).sum()), rel=1e-4, abs=1e-6)
            loss()


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (learning_rates(1.0, 10, 0.2), [0, 0.5, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        (learning_rates(2.0, 4, 0.0), [2, 1.5, 1, 0.5]),
        (learning_rates(2.0, 4, 0.5, "constant"), [0, 1, 2, 2]),
    ],
)
def test_learning_rates(rates, expected):
    np.testing.assert_allclose(rates, expected)


def test_bad_schedules():
    with pytest.raises(UserError, match=r"warm-up 1\.5 is not a share"):
        learning_rates(1.0, 4, 1.5)
    with pytest.raises(UserError, match="schedule 'cosine' is not one of linear, constant"):
        learning_rates(1.0, 4, 0.1, "cosine")


def test_what_goes_by_dev_scores_needs_a_dev_set():
    with pytest.raises(UserError, match="selection 'best' needs a development set"):
        FineTuning(toy_encoder(), None, ToyTask(), toy_records(), [], Settings(selection="best"))
    with pytest.raises(UserError, match=r"patience \(early stopping\) needs selection 'best'"):
        Settings(selection="last", patience=2).check_dev(True)
    with pytest.raises(UserError, match="restart_below needs a development set"):
        FineTuning(toy_encoder(), None, ToyTask(), toy_records(), [], Settings(selection="last", restart_below=16))


def test_selection_takes_the_best_epoch_and_patience_stops():
    def run(scores, **more):
        task, states = ToyTask(), []
        settings = Settings(learning_rate=1e-3, batch=8, epochs=5, **more)
        tuning = FineTuning(toy_encoder(), None, task, toy_records(), toy_records(3), settings)

        def score(records, predictions):
            states.append(all_values(tuning.model))
            return {"accuracy": scores[len(states) - 1]}

        task.score = score
        tuning.run()
        assert same(all_values(tuning.model), states[tuning.progress.best_epoch])
        return tuning.progress.best_epoch, len(states)

    assert run([1, 3, 3, 2, 1]) == (1, 5)
    assert run([1, 3, 2, 3, 9], patience=2) == (1, 4)
    assert run([1, 2, 3, 4, 5], patience=1) == (4, 5)
