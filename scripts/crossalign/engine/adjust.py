"""Cross-lingual adjustment (equation 1 of `adjust`), and the same as a second loss of a fine-tuning (equation 2)."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from crossalign.engine.batches import Stream, by_length
from crossalign.engine.checkpoints import Checkpoints, Saver, Saving
from crossalign.engine.encoder import Encoder, restore_vocabulary, slice_vocabulary
from crossalign.engine.finetune import Auxiliary
from crossalign.engine.heads import full_precision
from crossalign.engine.huggingface import load_weights
from crossalign.engine.hyperparameters import fingerprint, folder_identity
from crossalign.engine.optimiser import AdamW, learning_rates
from crossalign.engine.pairs import Choice, PairStore, Sample, make_pairs, read_sample
from crossalign.engine.parts import Part, batch_inputs
from crossalign.engine.seeds import derive
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


# Points of the loss curve in the report.
_POINTS = 50


@dataclass
class AdjustmentSettings:
    """Hyper-parameters of an adjustment; the defaults are the authors' (`adjust`, equation 1 and section 5.1).

    Differs from the authors' scripts: they add the losses of groups of 4 pairs, here a step is one mean over its 32
    pairs. Adam ignores the scale, so what differs is that groups with few links no longer weigh as much as others.
    """

    pairs: int = 30000
    aggregation: str = "avg"
    tokens: str = "all"
    batch: int = 32
    epochs: int = 1
    learning_rate: float = 5e-5
    warmup: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-9
    clip: float = 0.0
    seed: int = 1
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name in ("pairs", "batch", "epochs"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name} {getattr(self, name)}: at least 1 is needed")
        if self.learning_rate <= 0:
            raise UserError(f"learning rate {self.learning_rate} is not positive")
        _ = self.choice

    @property
    def choice(self) -> Choice:
        """Aggregation and tokens, checked."""
        return Choice(self.aggregation, self.tokens)


@dataclass
class Progress:
    """What a checkpoint notes beside the tensors."""

    step: int = 0
    seconds: float = 0.0
    resumed: int = 0


def make_store(
    sample: Sample, encoder: Encoder, tokenizer: Tokenizer, choice: Choice
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
    return store, {**account, "aligned": int(store.linked.sum()), "held": store.units}


class Adjusting:
    """One adjustment from the original to the adjusted weights."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        sample: Sample,
        settings: AdjustmentSettings,
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        recipe: str = "",
        saving: Saving | None = None,
        identity: Any = None,
        capture: bool | None = None,
        keep: str = "auto",
    ) -> None:
        self.settings, self.device = settings, torch.device(device)
        self.encoder = encoder
        self.store, self.account = make_store(sample, encoder, tokenizer, settings.choice)
        mark = fingerprint(recipe, settings, identity, *content(self.store))
        self.checkpoints = Checkpoints(checkpoints, mark)
        self.frozen = freeze(copy.deepcopy(encoder), self.store, self.device, settings.precision, keep)
        self._full = encoder.embeddings.word.weight.data
        used = torch.from_numpy(np.unique(self.store.ids))
        self.store.remap(slice_vocabulary(encoder, used).numpy())
        if self.frozen.encoder is not None:
            slice_vocabulary(self.frozen.encoder, used)
        encoder.to(self.device).train()
        self.stream = Stream(self.store, settings.batch, settings.seed, "sentence pairs in order")
        self.steps = settings.epochs * len(self.stream)
        rates = learning_rates(settings.learning_rate, self.steps, settings.warmup, "constant")
        optimiser = AdamW((settings.beta1, settings.beta2), settings.eps, 0.0, settings.clip)
        part = Part(self.store, PullLoss(self.frozen), settings.batch)
        self.engine = Engine(encoder, {}, [part], rates, optimiser, settings.precision, capture=capture)
        self.progress = Progress()
        self.saver = Saver(self.checkpoints, saving, self.progress)

    def run(self) -> Encoder:
        """Train, or go on from a checkpoint; the encoder ends on the CPU, in fp32 and with its whole vocabulary."""
        with self.saver.running():
            self.engine.seed_dropout(derive(self.settings.seed, "dropout"))
            self._resume()
            batches = self.stream.endless(self.progress.step)
            while self.progress.step < self.steps:
                self.engine.step(next(batches))
                self.progress.step += 1
                if self.progress.step < self.steps:
                    self._maybe_save()
            self._check()
        self.engine.arena.detach()
        restore_vocabulary(self.encoder, self._full)
        return self.encoder.cpu().eval()

    def curve(self) -> list[list[float]]:
        """The loss: [step, mean since the point before]."""
        losses = self.engine.losses.double().cpu().numpy()
        parts = np.array_split(np.arange(len(losses)), min(_POINTS, len(losses)))
        return [[int(part[-1]) + 1, round(float(losses[part].mean()), 6)] for part in parts]

    def _check(self) -> None:
        losses = self.engine.losses[: self.progress.step].cpu().numpy()
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            rate = float(self.engine.numbers[bad[0], 0])
            raise UserError(
                f"the loss is {losses[bad[0]]} at step {bad[0] + 1} (learning rate {rate:.3g}); "
                "a smaller learning rate or --precision fp32 may help"
            )

    def _maybe_save(self) -> None:
        if self.saver.due(self.progress.step):
            self._check()
            self.saver.save(self.progress.step, self.engine.state())

    def _resume(self) -> None:
        found = self.saver.resume()
        if found is not None:
            self.engine.load_state(found[0])
            log.info("going on at step %d", self.progress.step + 1)


def content(store: PairStore) -> list[np.ndarray]:
    """All that a store holds, for fingerprints."""
    sequences = store.sequences
    return [sequences.ids, sequences.lengths, sequences.values["unit"], store.counts, store.partners]


SCOPES = ("alignment", "both")


@dataclass
class ContinualSettings:
    """The second loss of a fine-tuning; the defaults are the authors' (`adjust`, section 5.1).

    `alpha` weighs the alignment term alone, as in the authors' scripts, or `both` terms, as the paper prints it.
    """

    pairs: int = 30000
    aggregation: str = "avg"
    tokens: str = "all"
    batch: int = 16
    alpha: float = 0.01
    alpha_scope: str = "alignment"

    def __post_init__(self) -> None:
        if self.alpha_scope not in SCOPES:
            raise UserError(f"alpha scope '{self.alpha_scope}' is not one of {', '.join(SCOPES)}")
        if self.alpha < 0:
            raise UserError(f"alpha {self.alpha} is negative")


def continual(
    settings: ContinualSettings,
    sample: Sample,
    reference: Encoder,
    tokenizer: Tokenizer,
    seed: int,
    device: torch.device,
    precision: str = "fp32",
    keep: str = "auto",
) -> tuple[Auxiliary, dict[str, Any]]:
    """Equation 1 as a second loss of a fine-tuning, and an account of its data. `reference` is the original model."""
    store, account = make_store(sample, reference, tokenizer, Choice(settings.aggregation, settings.tokens))
    account = {**vars(settings), **account, "content": fingerprint("pairs", settings, *content(store))}
    frozen = freeze(reference, store, device, precision, keep)
    loss = PullLoss(frozen, settings.alpha, settings.alpha if settings.alpha_scope == "both" else 1.0)
    return Auxiliary(Stream(store, settings.batch, seed, "continual"), loss, 1.0, frozen.encoder), account


def continual_from_files(
    settings: ContinualSettings,
    bitext: Path,
    links: Path,
    reference: Path,
    model: Encoder,
    tokenizer: Tokenizer,
    seed: int,
    device: torch.device,
    precision: str,
) -> tuple[Auxiliary, dict[str, Any]]:
    """`continual` on files; the sample is the one that an adjustment of the same seed and size used."""
    original = load_weights(reference)
    for name in ("vocab_size", "hidden", "family"):
        ours, theirs = getattr(model.config, name), getattr(original.config, name)
        if ours != theirs:
            raise UserError(f"{reference}: {name} is {theirs}, but the fine-tuned model has {ours}; give its original")
    sample = read_sample(bitext, links, settings.pairs, seed)
    auxiliary, account = continual(settings, sample, original, tokenizer, seed, device, precision)
    return auxiliary, {**account, "reference": folder_identity(reference)}
