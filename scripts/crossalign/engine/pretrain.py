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
from crossalign.engine.corpus import Blocks, Corpus, block_maker, corpus_maker
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


class DevLoss:
    """Mean loss per target of each text and of all together.

    `corpora(files, size, exponent, seed)` and `blocks(corpus, batch, seed)` make the blocks as in training;
    the seed here is always the same.
    """

    def __init__(
        self,
        files: dict[str, Path],
        size: int,
        corpora: Callable[..., Corpus],
        blocks: Callable[[Corpus, int, int], Blocks],
    ) -> None:
        self.stores: dict[str, Blocks] = {}
        for name in sorted(files):
            try:
                corpus = corpora({name: files[name]}, size, 1.0, 0)
            except UserError as error:
                raise UserError(f"--dev {error}") from None
            # All blocks are one batch, so that each comes once.
            count = int(min(corpus.examples[0], _MOST // corpus.mean_length()))
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
            with engine.mixed():
                batch, states = run_encoder(encoder, store, piece, engine.device)
                loss = masked_loss(head, states, encoder.word.weight, batch["places"], batch["truth"])
            losses.append(loss)
            counts.append(int(store.targets[piece].sum()))
        return float(torch.stack(losses).double().cpu() @ torch.tensor(counts).double()), sum(counts)


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
        config = encoder.config
        if settings.block > config.max_length:
            raise UserError(f"blocks of {settings.block} tokens: the model has positions for {config.max_length} only")
        if settings.selection == "best" and not dev:
            raise UserError("selection best chooses by the loss on dev texts; give --dev NAME=FILE")
        self.settings, self.device = settings, torch.device(device)
        self.encoder, self.head = encoder.to(self.device).train(), head.to(self.device).train()
        corpora = corpus_maker(tokenizer, settings.line_by_line)
        self.corpus = corpora(files, settings.block - 1, settings.exponent, settings.seed)
        blocks, leave_out = block_maker(config, tokenizer, settings.masking)
        self.unigram_entropy = self.corpus.unigram_entropy(leave_out)
        self.store = blocks(self.corpus, settings.batch, settings.seed)
        self.dev = DevLoss(dev or {}, settings.block - 1, corpora, blocks)
        self.total = settings.steps
        self._set_dropout()
        self.engine = self._make_engine()
        corpus = self.corpus
        texts = {name: [files[name].name, int(n)] for name, n in zip(corpus.names, corpus.counts, strict=True)}
        about = [config.to_huggingface(), texts, identity, sorted(path.name for path in (dev or {}).values())]
        self.progress = PretrainProgress()
        self.checkpoints = Checkpoints(checkpoints, fingerprint(code_hash, settings, about), saving, self.progress)

    def _set_dropout(self) -> None:
        self._config = self.encoder.config
        if self.encoder.backend == "library":
            if self.settings.dropout is not None or self.settings.attention_dropout is not None:
                raise UserError("--dropout: a model of the library keeps the dropout of its config.json")
            return
        hidden, attention = self.settings.dropout, self.settings.attention_dropout
        attention = hidden if attention is None else attention
        shares = {"hidden_dropout": hidden, "attention_dropout": attention}
        self._configure(replace(self._config, **{name: share for name, share in shares.items() if share is not None}))

    def _configure(self, config: EncoderConfig) -> None:
        if self.encoder.backend == "library":
            return
        self.encoder.config = config
        for layer in self.encoder.layers:
            layer.config = config

    def _make_engine(self) -> Engine:
        settings, head, encoder = self.settings, self.head, self.encoder

        def loss(encode: Callable, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return masked_loss(head, encode(), encoder.word.weight, batch["places"], batch["truth"])

        rates = learning_rates(settings.learning_rate, settings.steps, settings.warmup, settings.schedule)
        part = Part(self.store, loss, settings.batch)
        return Engine(encoder, {"head": head}, [part], rates, AdamW.of(settings), settings.precision)

    def run(self) -> None:
        """Train, or go on from a checkpoint. Afterwards encoder and head hold the result in fp32."""
        super().run()
        self._configure(self._config)

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

    def score(self) -> tuple[float, dict[str, float]]:
        return self.dev(self.engine, self.head)

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


def wave_positions(encoder: Encoder, height: float) -> None:
    """Before training from scratch: position vectors that begin as sine waves of this height, not at random.

    How far apart two words are is then plain from the start, and attention learns to look at neighbours sooner. Waves
    of 3 to 16 positions cancel out in the mean of a sentence. With longer ones that mean tells the sentence's length,
    and translations of each other seem alike in the first layers for no other reason.
    """
    with torch.no_grad():
        positions = encoder.embeddings.position.weight
        count, width = positions.shape
        lengths = 3 * (16 / 3) ** torch.linspace(0, 1, (width + 1) // 2)
        angles = torch.arange(count)[:, None] * (2 * math.pi / lengths)
        positions.copy_(height * torch.cat([angles.sin(), angles.cos()], 1)[:, :width])


def segments_are_even(encoder: Encoder) -> bool:
    """Whether all segments have the same vector, and there are several."""
    rows = getattr(getattr(getattr(encoder, "embeddings", None), "segment", None), "weight", None)
    return rows is not None and len(rows) > 1 and bool((rows == rows[0]).all())


def even_segments(encoder: Encoder) -> None:
    """After training from scratch: segments that the text did not have get the vector of the one that it had.

    A later task with two segments then starts without a disturbance.
    """
    if hasattr(encoder.embeddings, "segment"):
        with torch.no_grad():
            encoder.embeddings.segment.weight[1:] = encoder.embeddings.segment.weight[0]
