"""Cross-lingual adjustment: train an encoder on equation 1 of `adjust`."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from crossalign.engine.arena import AdamW
from crossalign.engine.batches import Stream
from crossalign.engine.checkpoints import Checkpoints
from crossalign.engine.encoder import Encoder, restore_vocabulary, slice_vocabulary
from crossalign.engine.hyperparameters import AdjustmentSettings, fingerprint
from crossalign.engine.linked import Sample
from crossalign.engine.pairs import Choice, PairStore, make_pairs
from crossalign.engine.parts import Part
from crossalign.engine.pull import PullLoss, freeze
from crossalign.engine.saving import Saver, Saving
from crossalign.engine.schedule import learning_rates
from crossalign.engine.seeds import derive
from crossalign.engine.steps import Engine
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)

# Points of the loss curve in the report.
_POINTS = 50


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
        self.store, self.account = make_store(sample, encoder, tokenizer, Choice(settings.aggregation, settings.tokens))
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
        optimiser = AdamW(settings.betas, settings.epsilon, 0.0, settings.clip)
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
