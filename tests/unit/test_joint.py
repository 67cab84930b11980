"""Both losses of a fine-tuning in one pass through the encoder: the same effect as one pass after another."""

import logging

import numpy as np
import pytest
import torch
from tests.engine_toys import ToyTask, toy_records
from tests.unit.adjustment_toys import VOCABULARY, toy_files, toy_model, toy_tokenizer

from crossalign.engine.adjust import ContinualSettings, continual
from crossalign.engine.batches import Store
from crossalign.engine.encoder import Encoder
from crossalign.engine.finetune import FineTuning
from crossalign.engine.hyperparameters import Settings
from crossalign.engine.optimiser import AdamW
from crossalign.engine.pairs import read_sample
from crossalign.engine.parts import Joint, Part
from crossalign.engine.seeds import torch_seeded
from crossalign.engine.steps import Engine
from crossalign.tasks import get_task

LABELS = ("B-PER", "I-PER", "O")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("joint")
    toy_files(folder, 37)
    toy_tokenizer(folder)
    return folder


def auxiliary(place, keep="table"):
    sample = read_sample(place / "pool.tsv", place / "pool.pharaoh", 30000, 1)
    return continual(ContinualSettings(batch=5), sample, toy_model(2), toy_tokenizer(place), 1, CPU, keep=keep)[0]


def examples(task, count, longest, typed, seed=5):
    """Random ids and, for the fields of a task, random targets."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        length = int(generator.integers(3, longest + 1))
        words = int(generator.integers(1, length))
        made.append({"input_ids": generator.integers(4, len(VOCABULARY), length).tolist()})
        if typed:
            made[-1]["token_type_ids"] = (np.arange(length) > length // 2).astype(int).tolist()
        for name, field in task.fields.items():
            most = {"word_starts": length, "heads": words + 1, "start": length, "end": length}.get(name, 3)
            size = {"sequence": length, "words": words, "scalar": None}[field.shape]
            made[-1][name] = generator.integers(0, most, size).tolist()
    return made


def trained(place, task, joint, longest=12, typed=False, steps=8, norm="post"):
    """An engine after some steps with static shapes; the last batches of both parts are short ones."""
    encoder = toy_model(1, positions=160, norm=norm)
    store = Store(examples(task, 8 * (steps - 1) + 3, longest, typed), task.fields, 0, 160)
    second = auxiliary(place)
    with torch_seeded(1, "head"):
        head = task.make_head(16, 0.0)
    pull = Part(second.batches.store, second.loss, second.batches.batch_size, 0.7)
    parts = [Part(store, lambda encode, batch: task.loss(head, encode(), batch), 8), pull]
    # A larger epsilon, or Adam blows up the rounding noise of gradients that are 0, such as that of the keys' bias.
    optimiser = AdamW(eps=1e-4)
    engine = Engine(encoder, {"head": head}, parts, np.full(steps, 1e-3), optimiser, capture=False, static=True)
    if not joint:
        engine.joint = None
    for step in range(steps):
        engine.step(np.arange(len(store))[8 * step : 8 * step + 8], second.batches.at(step))
    return engine


@pytest.mark.parametrize(
    ("name", "longest", "typed", "norm"),
    [
        ("toy", 12, False, "post"),
        ("nli", 100, True, "post"),
        ("nli", 12, False, "pre"),
        ("qa", 150, True, "post"),
        ("ner", 90, True, "post"),
        ("parsing", 12, False, "post"),
        ("pos", 40, False, "normformer"),
    ],
)
def test_one_pass_has_the_effect_of_two(place, name, longest, typed, norm):
    """Losses to 1e-5, weights to 1e-5 of what they moved."""
    task = ToyTask() if name == "toy" else get_task(name, None if name in ("nli", "qa") else LABELS)
    one, two = (trained(place, task, joint, longest, typed, norm=norm) for joint in (True, False))
    np.testing.assert_allclose(one.losses, two.losses, rtol=1e-5)
    start = trained(place, task, True, longest, typed, steps=0, norm=norm).arena.master
    moved = (two.arena.master - start).norm()
    assert moved > 0.1
    assert (one.arena.master - two.arena.master).norm() < 1e-5 * moved


# ---- the vector -----------------------------------------------------------------------------------------------------


def test_joint_shapes_are_few():
    """Lengths as in MultiNLI and in sentence pairs: so many shapes need a graph."""
    generator = np.random.default_rng(1)
    lengths = [np.clip(generator.lognormal(mean, 0.45, 4000).astype(int), 5, 128) for mean in (3.6, 3.55)]
    stores = [Store([{"input_ids": [1] * length} for length in part], {}, 0, 128) for part in lengths]
    joint = Joint([Part(store, None, 32) for store in stores])
    batches = [[generator.permutation(4000)[:32] for _ in stores] for _ in range(1000)]
    shapes = {joint.static_shape(members) for members in batches}
    assert len(shapes) <= 10


# ---- when -----------------------------------------------------------------------------------------------------------


class Hungry(ToyTask):
    """No memory for more than so many sequences."""

    largest = 4

    def loss(self, head, hidden_states, batch):
        if len(batch["labels"]) > self.largest:
            raise torch.OutOfMemoryError("no memory")
        return super().loss(head, hidden_states, batch)


def tuning(place, static=True, keep="table", task=None):
    run = FineTuning(
        toy_model(1), None, task or ToyTask(), toy_records(30, vocabulary=len(VOCABULARY)), [],
        Settings(learning_rate=1e-3, batch=8, epochs=2, selection="last", epsilon=1e-4),
        auxiliary=auxiliary(place, keep),
    )  # fmt: skip
    run.engine.static = static
    return run


@pytest.fixture
def passes(monkeypatch):
    """Notes which encoder ran, and on how many sequences."""
    noted = []
    packed = Encoder.packed

    def noting(self, ids, positions, types, layout, all_layers=False):
        noted.append((self, layout.batch))
        return packed(self, ids, positions, types, layout, all_layers)

    monkeypatch.setattr(Encoder, "packed", noting)
    return noted


def test_one_pass_a_step_where_shapes_are_static(place, passes):
    for static, each_step in ((True, 1), (False, 2)):
        run = tuning(place, static)
        passes.clear()
        run.run()
        assert len(passes) == 8 * each_step
        # Static shapes are filled up; of 30 examples the last batch has 6.
        assert not static or set(passes) == {(run.model.encoder, 8 + 2 * 5)}


def test_a_reference_that_runs_at_each_step_keeps_the_parts_apart(place, passes):
    run = tuning(place, keep="encoder")
    assert run.engine.joint is None
    passes.clear()
    run.run()
    encoder, reference = run.model.encoder, run.auxiliary.reference
    assert passes == [(encoder, 8), (encoder, 10), (reference, 10)] * 8
    table = tuning(place)
    table.run()
    torch.testing.assert_close(run.engine.arena.master, table.engine.arena.master, atol=1e-5, rtol=0)


def test_other_encoders_see_the_right_rows_even_so(place):
    """A part that says nothing of its other encoder costs more, but gets what it asks for."""
    apart, one = (tuning(place, keep="encoder") for _ in range(2))
    for part in one.engine.parts:
        part.alone = False
    one.engine.joint = Joint(one.engine.parts)
    for run in (apart, one):
        run.run()
    torch.testing.assert_close(one.engine.arena.master, apart.engine.arena.master, atol=1e-6, rtol=0)


def test_out_of_memory_cuts_the_parts_apart_with_the_same_effect(place, passes, caplog):
    plain, hungry = tuning(place), tuning(place, task=Hungry())
    plain.run()
    passes.clear()
    with caplog.at_level(logging.WARNING):
        hungry.run()
    assert hungry.engine.micro == 2
    assert "batches of 8 now run in 2 pieces" in caplog.text
    # The pass that broke off, then two pieces of 4 examples and two of 3 pairs at each step.
    assert [size for _, size in passes] == [18, *[4, 4, 6, 6] * 8]
    np.testing.assert_allclose(hungry.engine.losses, plain.engine.losses, rtol=1e-5)
    torch.testing.assert_close(hungry.engine.arena.master, plain.engine.arena.master, atol=1e-6, rtol=0)
