"""Small texts, vocabularies and models for the tests of pretraining."""

from itertools import chain

import numpy as np
import torch

from crossalign.engine.corpus import lines_of
from crossalign.engine.folders import load_head, load_weights
from crossalign.engine.pretrain import PretrainSettings
from crossalign.engine.pretrain_job import starting_point
from crossalign.engine.tokenizer import train_vocabulary

SHAPE = {"hidden": 16, "layers": 2, "heads": 2, "intermediate": 32, "positions": 32, "initializer_range": 0.1}


def make_text(path, seed, sentences):
    """Sentences of a few fixed phrases in random order."""
    generator = np.random.default_rng(seed)
    letters = list("abcdefghij")
    words = ["".join(generator.choice(letters, 4)) for _ in range(24)]
    phrases = [" ".join(words[i : i + 4]) for i in range(0, 24, 4)]
    lines = [" ".join(generator.choice(phrases, generator.integers(1, 4))) for _ in range(sentences)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def make_texts(folder):
    """Two texts, and a vocabulary of each style."""
    texts = {"aa": [make_text(folder / "aa.txt", 1, 300)], "bb": [make_text(folder / "bb.txt", 2, 200)]}
    for style in ("bert", "xlm-roberta", "xglm"):
        make_tokenizer(folder / f"{style}.json", texts, style)
    return texts


def make_tokenizer(path, texts, style="bert", size=90):
    """A vocabulary of the texts."""
    files = [file for files in texts.values() for file in files]
    train_vocabulary(lambda: chain.from_iterable(map(lines_of, files)), size, style).save(str(path))


def start(folder, norm="post", family=None, style="bert", objective=None, **shape):
    """A new model."""
    return starting_point(None, folder / f"{style}.json", norm, family, {**SHAPE, **shape}, 1, objective)


def settings(**changes):
    """Of a short pretraining."""
    return PretrainSettings(**{"steps": 6, "batch": 4, "block": 16, "learning_rate": 1e-3, **changes})


def values(folder):
    """All parameters of a model folder."""
    encoder = load_weights(folder)
    named = [*encoder.named_parameters(), *load_head(folder, encoder.config).named_parameters()]
    return {name: value.detach() for name, value in named}


def same(left, right):
    """Whether two model folders agree to the last bit."""
    left, right = values(left), values(right)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
