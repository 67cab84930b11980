"""Language modelling, masked or causal, from scratch or on from an existing model, with checkpoints."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from crossalign.engine.checkpoints import Checkpoints, Progress, Saving
from crossalign.engine.corpus import Blocks, make_blocks
from crossalign.engine.encoder import Encoder
from crossalign.engine.identity import fingerprint
from crossalign.engine.lm_heads import Head, fresh_head, masked_loss
from crossalign.engine.loop import Loop
from crossalign.engine.optimiser import AdamW, learning_rates
from crossalign.engine.parts import Part, run_encoder
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.settings import PretrainSettings
from crossalign.engine.shape import EncoderConfig
from crossalign.engine.steps import Engine
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)

# Tokens of a text that are looked at, at most, and tokens per batch.
_MOST, _BUDGET = 1 << 17, {"cuda": 1 << 15, "cpu": 1 << 11}


@dataclass
class PretrainProgress(Progress):
    """`dev`: [step, loss, losses by text]."""

    dev: list[list[Any]] = field(default_factory=list)


class Pretraining(Loop):
    """One run of language modelling."""

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        tokenizer: Tokenizer,
        files: dict[str, Path],
        settings: PretrainSettings,
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        code_hash: str = "",
        saving: Saving | None = None,
        identity: Any = None,
        dev: dict[str, Path] | None = None,
    ) -> None:
        config, dev, device = encoder.config, dev or {}, torch.device(device)
        if settings.block > config.max_length:
            raise UserError(f"blocks of {settings.block} tokens: the model has positions for {config.max_length} only")
        if settings.selection == "best" and not dev:
            raise UserError("selection best chooses by the loss on dev texts; give --dev NAME=FILE")
        self.settings, self.total = settings, settings.steps
        self.encoder, self.head = encoder.to(device).train(), head.to(device).train()
        self.store = make_blocks(config, tokenizer, files, settings, settings.exponent, settings.seed)
        self.dev: dict[str, Blocks] = {}
        for name in sorted(dev):
            try:
                blocks = make_blocks(config, tokenizer, {name: dev[name]}, settings, 1.0, 0)
            except UserError as error:
                raise UserError(f"--dev {error}") from None
            # All blocks are one batch, so that each comes once.
            blocks.batch = int(min(blocks.corpus.examples[0], _MOST // blocks.corpus.mean_length()))
            self.dev[name] = blocks
        attention = settings.dropout if settings.attention_dropout is None else settings.attention_dropout
        shares = {"hidden_dropout": settings.dropout, "attention_dropout": attention}
        # While this runs; the model's own dropout is for later.
        self._own = config
        self._configure(replace(config, **{name: share for name, share in shares.items() if share is not None}))

        def loss(encode: Callable, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return masked_loss(head, encode(), encoder.word.weight, batch["places"], batch["truth"])

        rates = learning_rates(settings.learning_rate, settings.steps, settings.warmup, settings.schedule)
        part = Part(self.store, loss, settings.batch)
        self.engine = Engine(encoder, {"head": head}, [part], rates, AdamW.of(settings), settings.precision)
        corpus = self.store.corpus
        texts = {name: [files[name].name, int(n)] for name, n in zip(corpus.names, corpus.counts, strict=True)}
        about = [config.to_huggingface(), texts, identity, sorted(path.name for path in dev.values())]
        self.progress = PretrainProgress()
        self.checkpoints = Checkpoints(checkpoints, fingerprint(code_hash, settings, about), saving, self.progress)

    def _configure(self, config: EncoderConfig) -> None:
        for part in (self.encoder, *self.encoder.layers):
            part.config = config

    def run(self) -> None:
        """Train, or go on from a checkpoint. Afterwards encoder and head hold the result in fp32."""
        super().run()
        self._configure(self._own)

    def batches(self, number: int) -> list[np.ndarray]:
        return [self.store.members(number)]

    def before(self) -> None:
        super().before()
        self._measure_dev()

    def after(self, last: bool) -> None:
        step, every = self.progress.step, max(1, self.total // 20)
        if step % every == 0:
            # This waits for the device, seldom enough not to matter.
            log.info("step %d of %d: loss %.4f", step, self.total, float(self.losses(step - every).mean()))
        if last or step % self._dev_every == 0:
            self._measure_dev()

    @property
    def _dev_every(self) -> int:
        return self.settings.dev_every or max(1, self.total // 20)

    @torch.no_grad()
    def score(self) -> tuple[float, dict[str, float]]:
        """Mean loss per target of all dev texts together, and of each one."""
        self.encoder.eval(), self.head.eval()
        sums = {name: self._sum(store) for name, store in self.dev.items()}
        self.encoder.train(), self.head.train()
        loss, count = np.array(list(sums.values())).reshape(-1, 2).sum(axis=0)
        return loss / max(1, count), {name: loss / max(1, count) for name, (loss, count) in sums.items()}

    def _sum(self, store: Blocks) -> tuple[float, int]:
        """The sum of the losses, and how many they are."""
        members, device = store.members(0), self.engine.device
        step = max(1, _BUDGET[device.type] // store.block)
        losses, counts = [], []
        for piece in np.split(members, range(step, len(members), step)):
            with self.engine.mixed():
                batch, states = run_encoder(self.encoder, store, piece, device)
                losses.append(masked_loss(self.head, states, self.encoder.word.weight, batch["places"], batch["truth"]))
            counts.append(int(store.targets[piece].sum()))
        return float(torch.stack(losses).double().cpu() @ torch.tensor(counts).double()), sum(counts)

    @property
    def scores_left(self) -> int:
        # Scored are the start, every so many steps, and the end, which the cut stands for.
        return self.total // self._dev_every - 1 if self.dev else 0

    def _measure_dev(self) -> None:
        """Note the loss on the dev texts and, with selection `best`, keep the weights if it is the lowest so far."""
        if not self.dev:
            return
        loss, each = self.score()
        lowest = min((point[1] for point in self.progress.dev if math.isfinite(point[1])), default=math.inf)
        if self.settings.selection == "best" and loss < lowest:
            self.keep_best()
        point = [self.progress.step, round(loss, 5), {name: round(value, 5) for name, value in each.items()}]
        self.progress.dev.append(point)
        log.info("step %d of %d: dev loss %.4f", self.progress.step, self.total, loss)


def new_model(config: EncoderConfig, seed: int) -> tuple[Encoder, Head]:
    """An encoder and a head that were never trained."""
    return fresh_encoder(config, seed), fresh_head(config, seed)
