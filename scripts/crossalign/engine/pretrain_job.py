"""From texts to a model folder: what a pretraining starts from, and what it leaves behind."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from crossalign.engine.checkpoints import Saving
from crossalign.engine.corpus import encode_texts, mapped
from crossalign.engine.encoder import Encoder
from crossalign.engine.folders import load_language_model, save_language_model
from crossalign.engine.identity import folder_identity
from crossalign.engine.lm_heads import Head
from crossalign.engine.pretrain import Pretraining, PretrainSettings, new_model
from crossalign.engine.programs import circumstances
from crossalign.engine.shape import XGLM, XGLM_OFFSET, EncoderConfig
from crossalign.engine.tokenizer import load_tokenizer, read_tokenizer
from crossalign.engine.tokens import Specials
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import sha256, write_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The family of a new model by its norm, and the norm of each family.
_FAMILY = {"post": "bert", "pre": "roberta-prelayernorm", "normformer": "normformer"}
_NORM = {family: norm for norm, family in _FAMILY.items()} | {"xlm-roberta": "post", XGLM: "pre"}
# The shape of a new model if not given.
_SHAPE = {"positions": 512, "hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072}
_SHAPE |= {"dropout": 0.1, "initializer_range": 0.02}


@dataclass
class Start:
    """The model that training begins with; `identity` tells it from others."""

    encoder: Encoder
    head: Head
    tokenizer: Tokenizer
    identity: Any


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
) -> Start:
    """An existing model, or a new one of the given shape; its family says whether it is masked or causal."""
    if init is None:
        start = _new_start(tokenizer, norm, family, shape, seed, objective)
    elif tokenizer is not None or shape:
        raise UserError("--init keeps the shape and the tokenizer of the model; leave --tokenizer and the sizes out")
    else:
        encoder, head = load_language_model(init, seed)
        start = Start(encoder, head, load_tokenizer(init, encoder.config.vocab_size), folder_identity(init))
    kind = "clm" if start.encoder.config.causal else "mlm"
    if objective not in (None, kind):
        raise UserError(
            f"objective {objective}: a model of type '{start.encoder.config.family}' is trained with {kind}"
        )
    return start


def _new_start(tokenizer, norm, family, shape, seed, objective) -> Start:
    if objective == "clm" and family is None:
        norm, family = "pre", XGLM
    if tokenizer is None:
        raise UserError("a new model needs --tokenizer tokenizer.json (or --init FOLDER to go on from a model)")
    pieces, shape = read_tokenizer(tokenizer), dict(shape)
    spread = shape.pop("word_range", None)
    config = new_config(pieces, norm, family, shape)
    encoder, head = new_model(config, seed)
    if spread:
        with torch.no_grad():
            encoder.word.weight *= spread / config.initializer_range
    even_segments(encoder)
    # The other settings of the shape are in the configuration.
    return Start(encoder, head, pieces, {"word_range": spread} if spread else None)


def has_even_segments(encoder: Encoder) -> bool:
    """Whether all segments have the same vector, and there are several."""
    if not hasattr(encoder.embeddings, "segment"):
        return False
    rows = encoder.embeddings.segment.weight
    return len(rows) > 1 and bool((rows == rows[0]).all())


@torch.no_grad()
def even_segments(encoder: Encoder) -> None:
    """Give segments that texts do not have the vector of the one that they have.

    A later task with two segments then starts without a disturbance.
    """
    if hasattr(encoder.embeddings, "segment"):
        encoder.embeddings.segment.weight[1:] = encoder.embeddings.segment.weight[0]


def new_config(tokenizer: Tokenizer, norm: str, family: str | None, shape: dict[str, Any]) -> EncoderConfig:
    """The configuration of a new model. `positions` counts tokens; families with an offset get that many rows more."""
    family = family or _FAMILY[norm]
    if _NORM.get(family) != norm:
        raise UserError(f"family '{family}' has {_NORM.get(family, 'no')}-norm, not {norm}")
    shape = _SHAPE | shape
    dropout = shape.pop("dropout")
    values = {"hidden_dropout": dropout, "attention_dropout": dropout, "norm": norm, "family": family} | shape
    values["vocab_size"] = tokenizer.get_vocab_size()
    if family == XGLM:
        extra = _xglm_tokens(tokenizer)
        values |= {"pad_id": extra["pad_token_id"], "position_offset": XGLM_OFFSET, "types": 0, "eps": 1e-5}
        extra |= {"activation_function": "gelu", "scale_embedding": True}
    else:
        pad, bert, extra = Specials.of(tokenizer).pad, family == "bert", {"hidden_act": "gelu"}
        values |= {"pad_id": pad, "position_offset": 0 if bert else pad + 1}
        values |= {"types": 2, "eps": 1e-12} if bert else {"types": 1, "eps": 1e-5}
    values["positions"] += values["position_offset"]
    return EncoderConfig(**values, extra=extra)


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
    even = has_even_segments(start.encoder)
    with tempfile.TemporaryDirectory() as temporary:
        tokens = job.tokens or Path(temporary)
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
    tokens, step = [mapped(path) for path in files.values()], settings.batch
    if settings.line_by_line:
        end = Specials.of(tokenizer).sep
        whole = sum(int((text == end).sum()) for text in tokens)
    else:
        whole, step = sum(map(len, tokens)), step * (settings.block - 1)
    return math.ceil(epochs * whole / step)


def describe(training: Pretraining, job: Job, device: torch.device) -> dict[str, Any]:
    """Settings, texts, loss curve, speed, versions."""
    import tokenizers

    store, corpus, settings = training.store, training.store.corpus, training.settings
    return {
        "objective": "clm" if training.encoder.config.causal else "mlm",
        "recipe": job.code_hash,
        "settings": settings.model_dump(),
        "parameters": sum(p.numel() for module in (training.encoder, training.head) for p in module.parameters()),
        "texts": {
            name: {"tokens": int(count), "share": round(float(share), 4)}
            for name, count, share in zip(corpus.names, corpus.counts, corpus.shares, strict=True)
        },
        "tokens_seen": round(training.progress.step * settings.batch * store.mean_length()),
        # What knowing frequencies alone would give.
        "unigram_entropy": round(corpus.unigram_entropy(store.never), 4),
        "loss": training.curve(points=200, digits=5),
        "dev": [{"step": step, "loss": loss, "texts": each} for step, loss, each in training.progress.dev],
        **circumstances(training.progress, device, versions={"tokenizers": tokenizers.__version__}),
    }
