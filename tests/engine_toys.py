"""A tiny encoder and a tiny tagging task, so that the engine's tests depend on nothing else."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig

CONFIG = EncoderConfig(
    vocab_size=60, hidden=16, layers=2, heads=2, intermediate=24, positions=32,
    hidden_dropout=0.0, attention_dropout=0.0, initializer_range=0.2,
)  # fmt: skip


def toy_encoder(**changes):
    """A random encoder; `changes` are settings of its configuration."""
    return fresh_encoder(EncoderConfig(**{**vars(CONFIG), **changes}), 7)


def toy_records(count=50, seed=0, vocabulary=40):
    """Sentences of random ids; the label of a token is its id modulo 3."""
    generator = np.random.default_rng(seed)
    return [{"ids": generator.integers(5, vocabulary, generator.integers(2, 9)).tolist()} for _ in range(count)]


class ToyTask:
    """Tag every token with its id modulo 3."""

    name, metric = "toy", "accuracy"
    fields = {"labels": SimpleNamespace(pad=-100, shape="sequence")}
    labels = ("a", "b", "c")

    def examples(self, records, tokenizer, max_length, training=False):
        return [
            {"input_ids": record["ids"][:max_length], "labels": [i % 3 for i in record["ids"][:max_length]]}
            for record in records
        ]

    def make_head(self, hidden, dropout):
        return nn.Sequential(nn.Dropout(dropout), nn.Linear(hidden, 3))

    def loss(self, head, hidden_states, batch):
        scores = head(hidden_states).float()
        return nn.functional.cross_entropy(scores.reshape(-1, 3), batch["labels"].reshape(-1), ignore_index=-100)

    def predict(self, head, hidden_states, batch):
        return {"labels": head(hidden_states).argmax(-1)}

    def decode(self, examples, records, outputs):
        return [output["labels"][: len(e["input_ids"])] for e, output in zip(examples, outputs, strict=True)]

    def score(self, records, predictions):
        right = sum(int((p == np.array(r["ids"]) % 3).sum()) for r, p in zip(records, predictions, strict=True))
        return {"accuracy": 100 * right / sum(len(r["ids"]) for r in records)}


def die_at(run, number):
    """Run a fine-tuning that Ctrl-C ends at a step."""
    step = run.engine.step

    def dying(*members):
        if int(run.engine.step_number) == number:
            raise KeyboardInterrupt
        step(*members)

    run.engine.step = dying
    with pytest.raises(KeyboardInterrupt):
        run.run()


def all_values(model):
    """Every parameter, cloned, with the word table's rows in their place."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def same(left, right):
    """Whether two `all_values` agree to the last bit."""
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
