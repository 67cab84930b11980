"""Masked language modelling, from scratch or on from an existing model, with checkpoints and exact resumption."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from crossalign.errors import UserError
from crossalign.models.config import EncoderConfig
from crossalign.models.encoder import Encoder
from crossalign.models.init import fresh_encoder
from crossalign.models.lm_heads import MaskedHead, fresh_head, masked_loss
from crossalign.models.vocabulary import mask_token
from crossalign.tasks.tokenisation import Specials
from crossalign.training.arena import AdamW
from crossalign.training.checkpoints import Checkpoints
from crossalign.training.corpus import Corpus
from crossalign.training.engine import Engine, Part
from crossalign.training.finetune import InterruptedTraining, Saving
from crossalign.training.masking import MaskedBlocks
from crossalign.training.recipe import fingerprint
from crossalign.training.schedule import learning_rates
from crossalign.training.seeds import derive

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)

# Points of the loss curve in the report.
_POINTS = 200


@dataclass
class PretrainSettings:
    """Hyper-parameters of a pretraining. `dropout` holds while it runs; config.json keeps the model's own for later."""

    steps: int
    batch: int = 256
    block: int = 128
    learning_rate: float = 5e-4
    warmup: float = 0.06
    decay: str = "linear"
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-6
    clip: float = 1.0
    hidden_share: float = 0.15
    exponent: float = 0.7
    dropout: float = 0.1
    seed: int = 1
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("batch", 1), ("block", 8)):
            if getattr(self, name) < least:
                raise UserError(f"--{name} {getattr(self, name)}: at least {least} is needed")
        if self.learning_rate <= 0:
            raise UserError(f"learning rate {self.learning_rate} is not positive")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout {self.dropout} is not between 0 and 1")


@dataclass
class Progress:
    """What a checkpoint notes beside the tensors."""

    step: int = 0
    seconds: float = 0.0
    resumed: int = 0


class Pretraining:
    """One run of masked language modelling."""

    def __init__(
        self,
        encoder: Encoder,
        head: MaskedHead,
        tokenizer: Tokenizer,
        files: dict[str, Path],
        settings: PretrainSettings,
        device: torch.device | str = "cpu",
        checkpoints: str | Path | None = None,
        recipe: str = "",
        saving: Saving | None = None,
        identity: Any = None,
        capture: bool | None = None,
    ) -> None:
        config = encoder.config
        if settings.block > config.max_length:
            raise UserError(f"blocks of {settings.block} tokens: the model has positions for {config.max_length} only")
        if tokenizer.get_vocab_size() > config.vocab_size:
            raise UserError(
                f"the tokenizer has {tokenizer.get_vocab_size()} pieces, the model {config.vocab_size} embeddings; "
                "they do not belong together"
            )
        self.settings, self.saving, self.device = settings, saving or Saving(), torch.device(device)
        self.encoder, self.head = encoder.to(self.device).train(), head.to(self.device).train()
        self.corpus = Corpus(files, settings.block - 1, settings.exponent, settings.seed)
        specials = Specials.of(tokenizer)
        mask = mask_token(tokenizer)
        special = {specials.cls, specials.sep, specials.pad, specials.unk, mask}
        self.unigram_entropy = self.corpus.unigram_entropy(special)
        self.store = MaskedBlocks(
            self.corpus, settings.batch, specials.cls, mask, special, tokenizer.get_vocab_size(), settings.seed,
            settings.hidden_share, config.position_offset,
        )  # fmt: skip
        self._set_dropout(settings.dropout)
        self.engine = self._make_engine(capture)
        texts = {name: [path.name, int(count)] for name, path, count in self._texts(files)}
        self.checkpoints = Checkpoints(
            checkpoints, fingerprint(recipe, settings, [config.to_huggingface(), texts, identity])
        )
        self.progress = Progress()
        self.tokens_per_second: float | None = None
        self.stop_requested = False

    def _texts(self, files: dict[str, Path]):
        return [(name, files[name], count) for name, count in zip(self.corpus.names, self.corpus.counts, strict=True)]

    def _set_dropout(self, value: float) -> None:
        self._config = self.encoder.config
        changed = EncoderConfig(**{**vars(self._config), "hidden_dropout": value, "attention_dropout": value})
        self._configure(changed)

    def _configure(self, config: EncoderConfig) -> None:
        self.encoder.config = config
        for layer in self.encoder.layers:
            layer.config = config

    def _make_engine(self, capture: bool | None) -> Engine:
        settings, head, encoder = self.settings, self.head, self.encoder

        def loss(encode: Callable, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return masked_loss(head, encode(), encoder.embeddings.word.weight, batch["places"], batch["truth"])

        rates = learning_rates(settings.learning_rate, settings.steps, settings.warmup, settings.decay)
        optimiser = AdamW((settings.beta1, settings.beta2), settings.eps, settings.weight_decay, settings.clip)
        part = Part(self.store, loss, settings.batch)
        engine = Engine(encoder, {"head": head}, [part], rates, optimiser, settings.precision, capture=capture)
        engine.seed_dropout(derive(settings.seed, "dropout"))
        return engine

    def run(self) -> None:
        """Train, or go on from a checkpoint. Afterwards encoder and head hold the result in fp32."""
        previous = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop_requested", True))
        try:
            self._resume()
            self._steps()
        finally:
            signal.signal(signal.SIGTERM, previous)
        self.engine.arena.detach()
        self._configure(self._config)

    def _steps(self) -> None:
        settings, progress = self.settings, self.progress
        self._started = self._last_save = time.monotonic()
        first, steady = progress.step, None
        report_every = max(1, settings.steps // 20)
        for step in range(progress.step, settings.steps):
            self.engine.step(self.store.members(step))
            progress.step = step + 1
            if steady is None:
                # The first step also records it or warms the caches up.
                self._wait()
                steady = time.monotonic()
            if progress.step % report_every == 0:
                self._tell(progress.step, report_every)
            if progress.step < settings.steps:
                self._maybe_save()
        self._wait()
        self._check(0)
        if steady is not None and settings.steps - first > 1:
            tokens = (settings.steps - first - 1) * settings.batch * settings.block
            self.tokens_per_second = tokens / (time.monotonic() - steady)
        progress.seconds += time.monotonic() - self._started

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _tell(self, step: int, span: int) -> None:
        """A look at the losses, which waits for the device; seldom enough not to matter."""
        self._check(step - span)
        mean = float(self.engine.losses[step - span : step].double().mean())
        log.info("step %d of %d: loss %.4f", step, self.settings.steps, mean)

    def _check(self, first: int) -> None:
        losses = self.engine.losses[first : self.progress.step].cpu().numpy()
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            step = first + int(bad[0])
            rate = float(self.engine.numbers[step, 0])
            raise UserError(
                f"the loss is {losses[bad[0]]} at step {step + 1} (learning rate {rate:.3g}); "
                "a smaller learning rate, a longer warm-up or --precision fp32 may help"
            )

    def curve(self) -> list[list[float]]:
        """The loss curve: [step, mean loss since the point before], at most two hundred points."""
        losses = self.engine.losses.double().cpu().numpy()
        parts = np.array_split(np.arange(len(losses)), min(_POINTS, len(losses)))
        return [[int(part[-1]) + 1, round(float(losses[part].mean()), 5)] for part in parts]

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def _maybe_save(self) -> None:
        due = time.monotonic() - self._last_save >= self.saving.seconds
        if self.saving.steps is not None:
            due = self.progress.step % self.saving.steps == 0
        if not due and not self.stop_requested:
            return
        seconds = self.progress.seconds + time.monotonic() - self._started
        self.checkpoints.save(self.engine.state(), {**vars(self.progress), "seconds": seconds})
        self._last_save = time.monotonic()
        if self.stop_requested:
            raise InterruptedTraining(f"stopped by SIGTERM at step {self.progress.step}; the checkpoint is written")

    def _resume(self) -> None:
        found = self.checkpoints.load()
        if found is not None:
            tensors, notes = found
            self.engine.load_state(tensors)
            self.progress = Progress(**{name: notes[name] for name in vars(self.progress)})
            self.progress.resumed += 1
            log.info("going on at step %d", self.progress.step + 1)


def new_model(config: EncoderConfig, seed: int) -> tuple[Encoder, MaskedHead]:
    """An encoder and a head that were never trained."""
    return fresh_encoder(config, seed), fresh_head(config, seed)


def even_segments(encoder: Encoder) -> None:
    """After training from scratch: segments that the text did not have get the vector of the one that it had.

    A later task with two segments then starts without a disturbance.
    """
    with torch.no_grad():
        encoder.embeddings.segment.weight[1:] = encoder.embeddings.segment.weight[0]
