"""RANDOM-INIT: what is drawn, what is left alone, and that nothing else differs from the reference run."""

import numpy as np
import pytest
import torch
from tests.engine_toys import ToyTask, all_values, toy_encoder, toy_records

from crossalign.engine.finetune import FineTuning
from crossalign.engine.random_init import parse_init, random_init
from crossalign.engine.settings import Settings
from crossalign.runtime.errors import UserError


def test_names():
    names = {"ref": [], "random-1": [1], "random-1-2": [1, 2], "random-11-12": [11, 12]}
    for name, layers in names.items():
        assert parse_init(name, 12) == (layers, False)
    assert parse_init("random-all", 12) == (list(range(1, 13)), True)


@pytest.mark.parametrize("text", ["random", "random-0", "random-2-1", "random-12-13", "Ref"])
def test_bad_names(text):
    with pytest.raises(UserError, match=f"init '{text}'"):
        parse_init(text, 12)


def changed(encoder, before):
    return {name for name, value in all_values(encoder).items() if not torch.equal(value, before[name])}


def pretrained(**more):
    """An encoder whose norms and biases are not those of a fresh one."""
    encoder = toy_encoder(layers=4, hidden=32, intermediate=64, initializer_range=0.02, **more)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.5 + torch.arange(parameter.numel()).view(parameter.shape) / parameter.numel())
    return encoder


@pytest.mark.parametrize(("init", "layers"), [("ref", []), ("random-2-3", [2, 3]), ("random-all", [1, 2, 3, 4])])
def test_only_the_chosen_layers_change_and_all_of_each(init, layers):
    encoder = pretrained(norm="normformer", residual_scaling=True, family="normformer", position_offset=2)
    before = all_values(encoder)
    assert random_init(encoder, init, 1) == layers
    chosen = tuple(f"layers.{number - 1}." for number in layers)
    assert changed(encoder, before) == {name for name in before if init == "random-all" or name.startswith(chosen)}


def test_distribution():
    encoder = pretrained(norm="normformer", residual_scaling=True, family="normformer", position_offset=2)
    random_init(encoder, "random-1", 5)
    layer = encoder.layers[0]
    weights = torch.cat([p.flatten() for name, p in layer.named_parameters() if p.dim() == 2])
    assert abs(weights.mean()) < 0.001 and abs(weights.std() - 0.02) < 0.001
    for name, parameter in layer.named_parameters():
        if parameter.dim() == 1:
            one = name.endswith(("norm.weight", "_scale"))
            assert torch.equal(parameter, torch.full_like(parameter, 1.0 if one else 0.0)), name


def test_a_layer_gets_the_same_draw_in_every_set_and_another_for_another_seed():
    draws = []
    for init, seed in [("random-2", 1), ("random-1-4", 1), ("random-2", 2), ("random-1", 1)]:
        encoder = pretrained()
        random_init(encoder, init, seed)
        draws.append(encoder.layers[0 if init == "random-1" else 1].up.weight)
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert not torch.equal(draws[0], draws[3])


class Recording(ToyTask):
    """Keeps the data order and the dropout masks that a run sees."""

    def __init__(self):
        self.seen, self.masks = [], []

    def loss(self, head, hidden_states, batch):
        self.seen.append(batch["labels"].clone())
        self.masks.append(head[0](torch.ones(50)))
        return super().loss(head, hidden_states, batch)


def run(init, seed=1):
    task = Recording()
    encoder = toy_encoder(layers=4, hidden_dropout=0.1, attention_dropout=0.1)
    settings = Settings(learning_rate=1e-3, batch=8, epochs=2, selection="last", seed=seed)
    tuning = FineTuning(encoder, None, task, toy_records(), [], settings, init)
    head = {name: value.clone() for name, value in tuning.model.head.state_dict().items()}
    rates = tuning.engine.numbers.clone()
    tuning.run()
    return task, head, rates, tuning.engine.losses


def test_everything_else_equals_the_reference_run():
    reference, head, rates, losses = run("ref")
    other, other_head, other_rates, other_losses = run("random-all")
    assert all(torch.equal(a, b) for a, b in zip(reference.seen, other.seen, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(reference.masks, other.masks, strict=True))
    assert any((mask == 0).any() for mask in reference.masks)
    assert all(torch.equal(head[name], other_head[name]) for name in head)
    assert torch.equal(rates, other_rates)
    assert not np.allclose(losses, other_losses)
