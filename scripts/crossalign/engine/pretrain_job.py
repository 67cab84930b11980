"""From texts to a model folder: what a pretraining starts from, and what it leaves behind."""

from __future__ import annotations

import math
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from crossalign.engine.checkpoints import Saving
from crossalign.engine.corpus import encode_texts, line_count, token_count
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.folders import load_language_model, save_language_model
from crossalign.engine.identity import folder_identity
from crossalign.engine.lm_heads import Head
from crossalign.engine.pretrain import (
    Pretraining,
    PretrainSettings,
    even_segments,
    new_model,
    segments_are_even,
    wave_positions,
)
from crossalign.engine.programs import circumstances
from crossalign.engine.shape import KEYS, XGLM, XGLM_KEYS, EncoderConfig
from crossalign.engine.tokenizer import load_tokenizer
from crossalign.engine.tokens import Specials
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import sha256, write_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FAMILY = {"post": "bert", "pre": "roberta-prelayernorm", "normformer": "normformer"}
_NORM = {"roberta-prelayernorm": "pre", "normformer": "normformer", XGLM: "pre"}
OBJECTIVES = ("mlm", "clm")
# Shapes of new models if not given.
_SHAPE = {"positions": 512, "hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072}
_SHAPE |= {"dropout": 0.1, "initializer_range": 0.02}
_XGLM_SHAPE = _SHAPE | {"positions": 2048, "hidden": 1024, "layers": 24, "heads": 16, "intermediate": 4096}


@dataclass
class Start:
    """The model that training begins with; `identity` tells it from others."""

    encoder: BaseEncoder
    head: Head
    tokenizer: Tokenizer
    identity: Any
    fresh: bool


@dataclass
class Job:
    """Texts, settings and places of one pretraining; `epochs` over the texts take the place of the settings' steps."""

    texts: dict[str, list[Path]]
    settings: PretrainSettings
    out: Path
    tokens: Path | None = None
    checkpoints: Path | None = None
    code_hash: str = ""
    store: str = "fp32"
    saving: Saving = field(default_factory=Saving)
    dev: dict[str, list[Path]] = field(default_factory=dict)
    epochs: float | None = None


def starting_point(
    init: Path | None,
    tokenizer: Path | None,
    norm: str,
    family: str | None,
    shape: dict[str, Any],
    seed: int,
    objective: str | None = None,
    backend: str = "auto",
) -> Start:
    """An existing model, or a new one of the given shape; its family says whether it is masked or causal."""
    if init is None:
        start = _new_start(tokenizer, norm, family, shape, seed, objective)
    elif tokenizer is not None or shape:
        raise UserError("--init keeps the shape and the tokenizer of the model; leave --tokenizer and the sizes out")
    else:
        encoder, head = load_language_model(init, seed, backend)
        start = Start(encoder, head, load_tokenizer(init, encoder.config.vocab_size), folder_identity(init), False)
    kind = "clm" if start.encoder.config.causal else "mlm"
    if objective is not None and objective != kind:
        raise UserError(
            f"objective {objective}: a model of type '{start.encoder.config.family}' is trained with {kind}"
            + ("" if objective in OBJECTIVES else f"; the objectives are {', '.join(OBJECTIVES)}")
        )
    return start


def _new_start(tokenizer, norm, family, shape, seed, objective) -> Start:
    if objective == "clm" and family is None:
        norm, family = "pre", XGLM
    if tokenizer is None:
        raise UserError("a new model needs --tokenizer tokenizer.json (or --init FOLDER to go on from a model)")
    pieces = read_tokenizer(tokenizer)
    shape = dict(shape)
    waves, spread = shape.pop("position_waves", 0.0), shape.pop("word_range", None)
    config = new_config(pieces, norm, family, shape)
    encoder, head = new_model(config, seed)
    if spread:
        with torch.no_grad():
            encoder.word.weight *= spread / config.initializer_range
    if waves and config.causal:
        raise UserError("position_waves: the positions of a causal model are sine waves anyway, and not trained")
    if waves:
        wave_positions(encoder, waves)
    # The other settings of the shape are in the configuration.
    further = {"position_waves": waves, "word_range": spread}
    return Start(encoder, head, pieces, {name: value for name, value in further.items() if value} or None, True)


def read_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer.json, without padding and truncation."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise UserError(f"{path} cannot be read as a tokenizer: {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def new_config(tokenizer: Tokenizer, norm: str, family: str | None, shape: dict[str, Any]) -> EncoderConfig:
    """The configuration of a new model. `positions` counts tokens; families with an offset get that many rows more."""
    if norm not in _FAMILY:
        raise UserError(f"norm '{norm}' is not one of {', '.join(_FAMILY)}")
    family = family or _FAMILY[norm]
    if _NORM.get(family, "post") != norm:
        raise UserError(f"family '{family}' has {_NORM.get(family, 'post')}-norm, not {norm}")
    shape = dict(shape)
    scaled = shape.pop("residual_scaling", False)
    if scaled and norm != "normformer":
        raise UserError(f"residual scaling is a part of NormFormer; this model has {norm}-norm")
    shape = (_XGLM_SHAPE if family == XGLM else _SHAPE) | shape
    shape["hidden_dropout"] = shape.pop("dropout")
    shape.setdefault("attention_dropout", shape["hidden_dropout"])
    names = {ours: theirs for theirs, ours in (XGLM_KEYS if family == XGLM else KEYS).items()}
    if unknown := [name for name in shape if name not in names]:
        raise UserError(f"unknown setting of a model's shape: {', '.join(unknown)}")
    raw = {names[name]: value for name, value in shape.items()}
    raw |= {"model_type": family, "vocab_size": tokenizer.get_vocab_size()}
    if family == XGLM:
        raw |= _xglm_tokens(tokenizer) | {"activation_function": "gelu", "scale_embedding": True}
        return EncoderConfig.from_huggingface(raw, "the new model")
    pad, bert = Specials.of(tokenizer).pad, family == "bert"
    raw |= {"pad_token_id": pad, "hidden_act": "gelu", "type_vocab_size": 2 if bert else 1}
    raw |= {"layer_norm_eps": 1e-12 if bert else 1e-5} | ({"residual_scaling": True} if scaled else {})
    raw["max_position_embeddings"] += 0 if bert else pad + 1
    return EncoderConfig.from_huggingface(raw, "the new model")


def _xglm_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    start, pad, end = (tokenizer.token_to_id(name) for name in ("<s>", "<pad>", "</s>"))
    advice = "make it with train_vocabulary.py --style xglm"
    if None in (start, pad, end):
        raise UserError(f"a model of type 'xglm' wants a tokenizer with <s> <pad> </s> <unk>; {advice}")
    if tokenizer.encode("a").ids[:1] != [end]:
        raise UserError(f"a model of type 'xglm' wants a tokenizer that puts </s> before a text; {advice}")
    return {"bos_token_id": start, "pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": end}


def pretrain(start: Start, job: Job, device: torch.device) -> dict[str, Any]:
    """Train and write the folder; returns the report that training.json holds."""
    # A later stage of a model that was made here has only seen one kind of segment either.
    even = start.fresh or segments_are_even(start.encoder)
    with ExitStack() as stack:
        tokens = job.tokens or job.checkpoints or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files, dev = (encode_texts(texts, start.tokenizer, tokens) for texts in (job.texts, job.dev))
        settings = job.settings
        if job.epochs is not None:
            settings = settings.model_copy(update={"steps": steps_of(job.epochs, files, settings, start.tokenizer)})
        training = Pretraining(
            start.encoder, start.head, start.tokenizer, files, settings, device, job.checkpoints, job.code_hash,
            job.saving, start.identity, dev=dev,
        )  # fmt: skip
        training.run()
        report = describe(training, job, device)
    if even:
        even_segments(start.encoder)
    save_language_model(job.out, start.encoder, start.head, start.tokenizer, job.store)
    report["sha256"] = sha256(job.out / "model.safetensors")
    write_json(job.out / "training.json", report)
    training.checkpoints.remove()
    return report


def steps_of(epochs: float, files: dict[str, Path], settings: PretrainSettings, tokenizer: Tokenizer) -> int:
    """The steps in which as many lines, or else tokens, are seen as the texts have in so many epochs."""
    if settings.line_by_line:
        whole, step = sum(line_count(path, tokenizer) for path in files.values()), settings.batch
    else:
        whole, step = sum(map(token_count, files.values())), settings.batch * (settings.block - 1)
    return max(1, math.ceil(epochs * whole / step))


def describe(training: Pretraining, job: Job, device: torch.device) -> dict[str, Any]:
    """Settings, texts, loss curve, speed, versions."""
    import tokenizers

    corpus, settings = training.corpus, training.settings
    return {
        "objective": "clm" if training.encoder.config.causal else "mlm",
        "recipe": job.code_hash,
        "settings": settings.model_dump(),
        "parameters": sum(p.numel() for module in (training.encoder, training.head) for p in module.parameters()),
        "texts": {
            name: {"tokens": int(count), "share": round(float(share), 4)}
            for name, count, share in zip(corpus.names, corpus.counts, corpus.shares, strict=True)
        },
        "tokens_seen": round(training.progress.step * settings.batch * training.store.mean_length()),
        # What knowing frequencies alone would give.
        "unigram_entropy": round(training.unigram_entropy, 4),
        "loss": training.curve(points=200, digits=5),
        "dev": [{"step": step, "loss": loss, "texts": each} for step, loss, each in training.progress.dev],
        **circumstances(training.progress, device, versions={"tokenizers": tokenizers.__version__}),
    }
