"""Cross-lingual adjustment (equation 1 of `adjust`), and the same as a second loss of a fine-tuning (equation 2)."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.batches import Stream, by_length, ranges
from crossalign.engine.checkpoints import Checkpoints, Progress, Saving
from crossalign.engine.encoder import BaseEncoder, restore_vocabulary, slice_vocabulary
from crossalign.engine.finetune import Auxiliary
from crossalign.engine.folders import load_weights
from crossalign.engine.heads import full_precision
from crossalign.engine.identity import fingerprint
from crossalign.engine.loop import Loop
from crossalign.engine.optimiser import AdamW, learning_rates
from crossalign.engine.pairs import Choice, PairStore, Sample, make_pairs
from crossalign.engine.parts import Part, run_encoder, send
from crossalign.engine.settings import AdjustmentSettings, ContinualSettings
from crossalign.engine.steps import Engine
from crossalign.engine.task_model import BUDGET, TaskModel
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
    encoder: BaseEncoder | None = None

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
            places = batch["other"][:, None] * count + partner.clamp(min=0)
            other = vectors.flatten(0, 1).index_select(0, places.view(-1)).view_as(english)
            real = torch.arange(count, device=partner.device) < batch["count"][:, None]
            squares = batch["targets"][1].clamp(min=1) * english.shape[-1]
            aligned = ((english - other).square().sum(-1) * (partner >= 0)).sum() / squares[0]
            held = ((english - self.frozen.english(encode, batch)).square().sum(-1) * real).sum() / squares[1]
        return aligned, held


def freeze(
    encoder: BaseEncoder, store: PairStore, device: torch.device, precision: str = "fp32", keep: str = "auto"
) -> Frozen:
    """The original model, as a table where that fits beside the training (`keep`: auto, table or encoder).

    The encoder is taken over: moved to the device, frozen, without dropout.
    """
    encoder.requires_grad_(False)
    TaskModel(encoder, torch.nn.Identity()).place(device, precision)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    needed = len(store.partners) * encoder.config.hidden * dtype.itemsize
    if keep == "auto":
        # The other half is for the training itself.
        keep = "table" if needed <= _free(device) / 2 else "encoder"
    if keep == "encoder":
        log.info("the original vectors (%.1f GB) do not fit: computed again at each step", needed / 1e9)
        return Frozen(encoder=encoder)
    table = torch.empty(len(store.partners), encoder.config.hidden, dtype=dtype, device=device)
    with torch.no_grad():
        for members in by_length(store.sequences.lengths[::2], BUDGET[device.type]):
            batch, hidden = run_encoder(encoder, store.sequences, 2 * members, device)
            counts = store.counts[members]
            vectors = unit_vectors(hidden, batch["unit"], int(counts.max()))
            real = send(np.arange(vectors.shape[1]) < counts[:, None], device)
            table[send(ranges(store.starts[members], counts), device)] = vectors[real].to(dtype)
    return Frozen(table=table)


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def make_store(
    sample: Sample, encoder: BaseEncoder, tokenizer: Tokenizer, choice: Choice
) -> tuple[PairStore, dict[str, int]]:
    """The usable pairs of a sample for an encoder, and an account of the others; a UserError when none is left."""
    config = encoder.config
    pairs, dropped = make_pairs(sample, tokenizer, choice, config.max_length)
    if not pairs:
        reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        raise UserError(
            f"{sample.links_file}: none of {len(sample.rows)} sampled sentence pairs can be used ({reasons}); a usable "
            "link is the only one of both its words, and they are different strings"
        )
    account = {"pool": sample.pool, "sampled": len(sample.rows), **dropped, "used": len(pairs)}
    store = PairStore(pairs, config.position_offset, config.max_length)
    return store, {**account, "aligned": int(store.targets[:, 0].sum()), "held": len(store.partners)}


class Adjusting(Loop):
    """One adjustment from the original to the adjusted weights."""

    def __init__(
        self,
        encoder: BaseEncoder,
        tokenizer: Tokenizer,
        sample: Sample,
        settings: AdjustmentSettings,
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        code_hash: str = "",
        saving: Saving | None = None,
        identity: Any = None,
        keep: str = "auto",
    ) -> None:
        self.settings, self.device = settings, torch.device(device)
        self.encoder = encoder
        self.store, self.account = make_store(sample, encoder, tokenizer, Choice(settings.aggregation, settings.tokens))
        self.progress = Progress()
        identity = fingerprint(code_hash, settings, [identity, encoder.backend], *self.store.contents())
        self.checkpoints = Checkpoints(checkpoints, identity, saving, self.progress)
        self.frozen = freeze(copy.deepcopy(encoder), self.store, self.device, settings.precision, keep)
        self._full = encoder.word.weight.data
        used = torch.from_numpy(np.unique(self.store.ids))
        self.store.remap(slice_vocabulary(encoder, used).numpy())
        if self.frozen.encoder is not None:
            slice_vocabulary(self.frozen.encoder, used)
        encoder.to(self.device).train()
        self.stream = Stream(self.store, settings.batch, settings.seed, "sentence pairs in order")
        self.total = settings.epochs * len(self.stream)
        rates = learning_rates(settings.learning_rate, self.total, settings.warmup, "constant")
        part = Part(self.store, PullLoss(self.frozen), settings.batch)
        self.engine = Engine(encoder, {}, [part], rates, AdamW.of(settings), settings.precision)

    def run(self) -> BaseEncoder:
        """Train, or go on from a checkpoint; the encoder ends on the CPU, in fp32 and with its whole vocabulary."""
        super().run()
        restore_vocabulary(self.encoder, self._full)
        return self.encoder.cpu().eval()

    def batches(self, number: int) -> list[np.ndarray]:
        return [self.stream.at(number)]


def continual(
    settings: ContinualSettings,
    sample: Sample,
    reference: BaseEncoder,
    tokenizer: Tokenizer,
    seed: int,
    device: torch.device,
    precision: str = "fp32",
    keep: str = "auto",
) -> tuple[Auxiliary, dict[str, Any]]:
    """Equation 1 as a second loss of a fine-tuning, and an account of its data. `reference` is the original model."""
    store, account = make_store(sample, reference, tokenizer, Choice(settings.aggregation, settings.tokens))
    account = {**settings.model_dump(), **account, "content": fingerprint("pairs", settings, *store.contents())}
    frozen = freeze(reference, store, device, precision, keep)
    loss = PullLoss(frozen, settings.alpha, settings.alpha if settings.alpha_scope == "both" else 1.0)
    return Auxiliary(Stream(store, settings.batch, seed, "continual"), loss, 1.0, frozen.encoder), account


def load_reference(folder: Path, model: BaseEncoder) -> BaseEncoder:
    """The original model in `folder`, which must fit the one that is fine-tuned."""
    original = load_weights(folder, backend=model.backend)
    for name in ("vocab_size", "hidden", "family"):
        ours, theirs = getattr(model.config, name), getattr(original.config, name)
        if ours != theirs:
            raise UserError(f"{folder}: {name} is {theirs}, but the fine-tuned model has {ours}; give its original")
    return original
