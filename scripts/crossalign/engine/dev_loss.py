"""The loss on texts that are not trained on, with the same hidden tokens every time and in every run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from crossalign.engine.corpus import Corpus
from crossalign.engine.lm_heads import masked_loss
from crossalign.engine.masking import Blocks
from crossalign.engine.parts import batch_inputs
from crossalign.engine.steps import Engine
from crossalign.runtime.errors import UserError

# Tokens of a text that are looked at, at most, and tokens per batch.
_MOST, _BUDGET = 1 << 17, {"cuda": 1 << 15, "cpu": 1 << 11}


class DevLoss:
    """Mean loss per target of each text and of all together.

    `blocks(corpus, batch, seed)` makes the blocks as in training; the seed here is always the same.
    """

    def __init__(self, files: dict[str, Path], size: int, blocks: Callable[[Corpus, int, int], Blocks]) -> None:
        self.stores: dict[str, Blocks] = {}
        for name in sorted(files):
            try:
                corpus = Corpus({name: files[name]}, size, 1.0, 0)
            except UserError as error:
                raise UserError(f"--dev {error}") from None
            # All blocks are one batch, so that each comes once.
            count = int(min(corpus.counts[0], _MOST) // size)
            self.stores[name] = blocks(corpus, count, 0)

    def __bool__(self) -> bool:
        return bool(self.stores)

    @torch.no_grad()
    def __call__(self, engine: Engine, head: torch.nn.Module) -> tuple[float, dict[str, float]]:
        """The loss of all texts, and of each one."""
        encoder = engine.encoder
        modes = encoder.training, head.training
        encoder.eval(), head.eval()
        sums = {name: self._sum(store, engine, head) for name, store in self.stores.items()}
        encoder.train(modes[0]), head.train(modes[1])
        total = np.sum(list(sums.values()), axis=0)
        each = {name: loss / max(1, count) for name, (loss, count) in sums.items()}
        return total[0] / max(1, total[1]), each

    def _sum(self, store: Blocks, engine: Engine, head: torch.nn.Module) -> tuple[float, int]:
        """The sum of the losses, and how many they are."""
        encoder, members = engine.encoder, store.members(0)
        step = max(1, _BUDGET[engine.device.type] // store.block)
        losses, counts = [], []
        for piece in np.split(members, range(step, len(members), step)):
            shape = store.exact_shape(piece)
            views = store.views(torch.from_numpy(store.assemble(piece, shape)).to(engine.device), shape)
            layout, batch = batch_inputs(views, shape)
            with engine.mixed():
                states = layout.to_grid(encoder.packed(views["ids"], views["positions"], None, layout))
                loss = masked_loss(head, states, encoder.embeddings.word.weight, batch["places"], batch["truth"])
            losses.append(loss)
            counts.append(int(store.targets[piece].sum()))
        return float(torch.stack(losses).double().cpu() @ torch.tensor(counts).double()), sum(counts)
