"""Continual learning: equation 1 of `adjust` as a second loss of a fine-tuning (equation 2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from crossalign.engine.adjustment import content, make_store
from crossalign.engine.batches import Stream
from crossalign.engine.encoder import Encoder
from crossalign.engine.finetune import Auxiliary
from crossalign.engine.huggingface import load_weights
from crossalign.engine.hyperparameters import ContinualSettings, fingerprint, folder_identity
from crossalign.engine.linked import Sample, read_sample
from crossalign.engine.pairs import Choice
from crossalign.engine.pull import PullLoss, freeze
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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
