"""Small texts and vocabularies for the tests of pretraining."""

from itertools import chain

import numpy as np

from crossalign.engine.corpus import lines_of
from crossalign.engine.vocabulary import train_vocabulary

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


def make_tokenizer(path, texts, style="bert", size=90):
    """A vocabulary of the texts."""
    files = [file for files in texts.values() for file in files]
    train_vocabulary(lambda: chain.from_iterable(map(lines_of, files)), size, style).save(str(path))
