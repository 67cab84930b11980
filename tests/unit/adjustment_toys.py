"""A made-up language pair with known links, and a tokenizer that cuts some of its words."""

import numpy as np
import torch

from crossalign.engine.parts import batch_inputs, states
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.tokenizer import wordpiece_tokenizer

STEMS = ["ka", "lo", "mi", "nu", "pe", "ra"]
# English words and their translations: of one, two and three pieces.
ENGLISH = [*STEMS, "kalo", "mipe", "ranumi", "lolo"]
OTHER = ["ti", "tosu", "tosusi", "si", "titi", "su", "to", "sisu", "tito", "sutosi"]
PIECES = [*STEMS, "ti", "to", "su", "si"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *PIECES, *(f"##{piece}" for piece in PIECES)]


def toy_tokenizer(folder):
    """WordPiece over the syllables."""
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return wordpiece_tokenizer(folder / "vocab.txt")


def toy_model(seed=3, **changes):
    """A random encoder for the toy vocabulary."""
    settings = {
        "vocab_size": len(VOCABULARY), "hidden": 16, "layers": 2, "heads": 2, "intermediate": 24, "positions": 40,
        "hidden_dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2,
    }  # fmt: skip
    return fresh_encoder(EncoderConfig(**{**settings, **changes}), seed)


def toy_files(folder, count=40, seed=0):
    """pool.tsv and pool.pharaoh: translated word by word in reverse order, a full stop on both sides."""
    generator = np.random.default_rng(seed)
    pool, links = [], []
    for _ in range(count):
        words = generator.integers(0, len(ENGLISH), generator.integers(2, 7)).tolist()
        size = len(words)
        english = " ".join([ENGLISH[word] for word in words] + ["."])
        other = " ".join([OTHER[word] for word in reversed(words)] + ["."])
        pool.append(f"1.2\t{english}\t{other}\n")
        links.append(" ".join(f"{i}-{size - 1 - i}" for i in range(size)) + f" {size}-{size}\n")
    (folder / "pool.tsv").write_text("".join(pool), encoding="utf-8")
    (folder / "pool.pharaoh").write_text("".join(links), encoding="utf-8")
    return folder / "pool.tsv", folder / "pool.pharaoh"


def batch_of(encoder, store, members):
    """The batch of some pairs, and `encode` as a loss gets it."""
    batch = store.assemble(members)
    batch.tensors["targets"] = np.stack([store.targets[members].sum(0)] * 2)
    layout, batch = batch_inputs(batch.over(torch.from_numpy(batch.vector())))
    return batch, lambda other=None: states(other or encoder, layout, batch)
