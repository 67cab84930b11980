"""Equation 1 of `adjust`: linked words are pulled together, and English words are held where they were."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.batches import by_length
from crossalign.engine.encoder import Encoder
from crossalign.engine.heads import full_precision
from crossalign.engine.pairs import PairStore
from crossalign.engine.parts import batch_inputs
from crossalign.engine.predict import BUDGET, TaskModel

log = logging.getLogger(__name__)


def unit_vectors(hidden: Tensor, unit: Tensor, count: int) -> Tensor:
    """Sequences x `count` x neurons: the mean of the tokens of each unit, at least in fp32.

    A product with a matrix of zeros and ones: static shapes, and sums in an order that does not change.
    """
    with full_precision(hidden):
        hidden = hidden if hidden.dtype == torch.float64 else hidden.float()
        belongs = (unit[:, None, :] == torch.arange(count, device=unit.device)[:, None]).to(hidden.dtype)
        return belongs @ hidden / belongs.sum(-1, keepdim=True).clamp(min=1)


@dataclass
class Frozen:
    """The original model's vectors of English units: a `table` of all of them, or the `encoder` to compute them anew.

    Without dropout they are the same at every step, so the table is exact; it is in the precision of the states.
    """

    table: Tensor | None = None
    encoder: Encoder | None = None

    def english(self, encode: Callable[..., Tensor], batch: dict[str, Tensor]) -> Tensor:
        """Pairs x units x neurons."""
        pairs, count = batch["partner"].shape
        with torch.no_grad():
            if self.table is None:
                vectors = unit_vectors(encode(self.encoder), batch["unit"], count)
                return vectors.index_select(0, batch["english"])
            places = batch["first"][:, None] + torch.arange(count, device=self.table.device)
            # Places behind a sentence's end are another's, or none's; the loss does not look at them.
            rows = self.table.index_select(0, places.clamp(max=len(self.table) - 1).view(-1))
            return rows.view(pairs, count, -1).float()


@dataclass
class PullLoss:
    """The weighted sum of the two terms; each is a mean of squares over vectors and neurons."""

    frozen: Frozen
    alignment: float = 1.0
    regularisation: float = 1.0

    def __call__(self, encode: Callable[..., Tensor], batch: dict[str, Tensor]) -> Tensor:
        aligned, held = self.terms(encode, batch)
        return self.alignment * aligned + self.regularisation * held

    def terms(self, encode: Callable[..., Tensor], batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Distance of linked units, whose gradient moves both sides; distance of English units from the original."""
        hidden = encode()
        with full_precision(hidden):
            partner = batch["partner"]
            count = partner.shape[1]
            vectors = unit_vectors(hidden, batch["unit"], count)
            english = vectors.index_select(0, batch["english"])
            other = vectors.flatten(0, 1).index_select(0, partner.clamp(min=0).view(-1)).view_as(english)
            real = torch.arange(count, device=partner.device) < batch["count"][:, None]
            squares = batch["divisors"].clamp(min=1) * english.shape[-1]
            aligned = ((english - other).square().sum(-1) * (partner >= 0)).sum() / squares[0]
            held = ((english - self.frozen.english(encode, batch)).square().sum(-1) * real).sum() / squares[1]
        return aligned, held


def freeze(
    encoder: Encoder, store: PairStore, device: torch.device, precision: str = "fp32", keep: str = "auto"
) -> Frozen:
    """The original model, as a table where that fits beside the training (`keep`: auto, table or encoder).

    The encoder is taken over: moved to the device, frozen, without dropout.
    """
    encoder.requires_grad_(False)
    TaskModel(encoder, torch.nn.Identity()).place(device, precision)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    needed = store.units * encoder.config.hidden * dtype.itemsize
    if keep == "auto":
        # The other half is for the training itself.
        keep = "table" if needed <= _free(device) / 2 else "encoder"
    if keep == "encoder":
        log.info("the original vectors (%.1f GB) do not fit: computed again at each step", needed / 1e9)
        return Frozen(encoder=encoder)
    table = torch.empty(store.units, encoder.config.hidden, dtype=dtype, device=device)
    for places, vectors in english_vectors(encoder, store, device):
        table[places] = vectors.to(dtype)
    return Frozen(table=table)


@torch.no_grad()
def english_vectors(encoder: Encoder, store: PairStore, device: torch.device):
    """Batch after batch the places of English units among those of all pairs, and their vectors."""
    sequences = store.sequences
    for members in by_length(SimpleNamespace(lengths=sequences.lengths[::2]), BUDGET[device.type]):
        shape = sequences.exact_shape(2 * members)
        views = sequences.views(torch.from_numpy(sequences.assemble(2 * members, shape)).to(device), shape)
        layout, batch = batch_inputs(views, shape)
        hidden = layout.to_grid(encoder.packed(views["ids"], views["positions"], None, layout))
        counts = store.counts[members]
        width = int(counts.max())
        vectors = unit_vectors(hidden, batch["unit"], width)
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        cells = within + np.repeat(np.arange(len(members)) * width, counts)
        places = within + np.repeat(store.starts[members], counts)
        found = vectors.flatten(0, 1).index_select(0, torch.from_numpy(cells).to(device))
        yield torch.from_numpy(places).to(device), found


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4 << 30
