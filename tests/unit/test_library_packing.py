"""Decoders of the library that take a batch as one row: which do, and that it changes nothing."""

import pytest
import torch
from tests.unit.family_models import CAUSAL, FAMILIES, write_family
from torch._subclasses.fake_tensor import FakeTensorMode

from crossalign.engine.folders import load_weights
from crossalign.engine.layout import Layout

LENGTHS = (7, 0, 20, 3)
FILLING = 6


def batch_of(encoder):
    """Packed tokens, their positions and their layout, as a static shape has them."""
    layout = Layout(len(LENGTHS), 64, torch.tensor(LENGTHS), filled=True)
    real = layout.mask.view(-1).nonzero()[:, 0]
    layout.cells = torch.zeros(len(LENGTHS) * 64, dtype=torch.long)
    layout.cells[real] = torch.arange(len(real))
    layout.rows = torch.cat([real, torch.zeros(FILLING, dtype=torch.long)])
    ids = torch.randint(1, encoder.config.vocab_size, (sum(LENGTHS) + FILLING,), generator=torch.manual_seed(1))
    ids[-FILLING:] = 0
    positions = torch.cat([*(torch.arange(length) for length in LENGTHS), torch.zeros(FILLING, dtype=torch.long)])
    return ids, positions, layout


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_gives_what_a_grid_gives(family, tmp_path):
    encoder = load_weights(write_family(family, tmp_path), backend="library").train()
    # The others count positions, build masks or hold relations in ways of their own.
    assert encoder.packs == (family in ("gpt2", "llama", "qwen3", "gemma2", "gemma3_text"))
    assert encoder.training and encoder.model.training
    assert not encoder.packs or family in CAUSAL
    # Also in the precision of a GPU.
    assert load_weights(tmp_path, lambda name: (torch.device("cpu"), torch.bfloat16), "library").packs == encoder.packs
    encoder.eval()
    ids, positions, layout = batch_of(encoder)
    grid = encoder.visit(ids, None, layout)[:-FILLING]
    packed = encoder.packed(ids, positions, None, layout)[:-FILLING]
    torch.testing.assert_close(packed, grid, atol=1e-5, rtol=1e-5)
    assert packed.std() > 0.01
    weight = torch.randn(packed.shape, generator=torch.manual_seed(2))
    gradients = [torch.autograd.grad((each * weight).sum(), encoder.word.weight)[0] for each in (packed, grid)]
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)
    if encoder.packs:
        # A step that looks at numbers cannot be captured as a CUDA graph.
        with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
            state = encoder.train()._row(mode.from_tensor(positions), input_ids=mode.from_tensor(ids))
        assert state.shape == (len(ids), encoder.config.hidden)


def test_a_model_that_ignores_where_sequences_begin_gets_a_grid(tmp_path):
    encoder = load_weights(write_family("llama", tmp_path), backend="library").eval()
    ids, positions, layout = batch_of(encoder)
    grid = encoder.visit(ids, None, layout)[:-FILLING]
    forward = encoder.model.forward

    def forgetful(input_ids=None, position_ids=None, inputs_embeds=None, **others):
        return forward(input_ids=input_ids, inputs_embeds=inputs_embeds, **others)

    encoder.model.forward = forgetful
    assert not encoder.packs
    torch.testing.assert_close(encoder.packed(ids, positions, None, layout)[:-FILLING], grid)


def test_only_what_fills_a_static_shape_is_one_row(tmp_path):
    """On a CPU, and where all layers are asked for, everything stays as it is."""
    encoder = load_weights(write_family("llama", tmp_path), backend="library").eval()
    ids, positions, layout = batch_of(encoder)
    encoder._row = None
    encoder.packs = True
    assert len(encoder.packed(ids, positions, None, layout, all_layers=True)) == 4
    layout.filled, layout.rows = False, layout.rows[:-FILLING]
    encoder.packed(ids[:-FILLING], positions[:-FILLING], None, layout)
