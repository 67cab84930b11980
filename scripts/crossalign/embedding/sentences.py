"""Sentence embeddings of text files: an array of layers x sentences x neurons for each, and sentences' lengths."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from crossalign.data.lines import numbered
from crossalign.embedding.model import Loaded
from crossalign.embedding.states import embed, make_store, write_array
from crossalign.engine.batches import Store
from crossalign.engine.tokens import Frame, named_token
from crossalign.runtime.errors import UserError
from crossalign.runtime.meter import meter

log = logging.getLogger("embed")

# Sentences that are tokenised at a time: a tokenizer's answer takes many times the memory of its token numbers.
_TOKENISED = 512


@dataclass(frozen=True)
class Options:
    """How a sentence becomes a vector."""

    max_length: int = 200
    special_tokens: str = "exclude"
    last_layer: str = "mean"


@dataclass
class Counts:
    """What was read: sentences, those cut at the longest length, those without a word."""

    sentences: int = 0
    cut: int = 0
    empty: int = 0


def embed_files(model: Loaded, files: dict[str, Path], out: Path, options: Options) -> dict[str, Counts]:
    """Write `<out>/<language>.npy` and `<out>/<language>.lengths.npy` for every file.

    Each appears complete or not at all, the lengths first. A length is the number of tokens in the sentence's mean.
    """
    frame = Frame.of(model.tokenizer)
    # A causal model's first token sees itself alone.
    has_cls = not model.config.causal and frame.before[:1] == (named_token(model.tokenizer, "cls"),)
    if options.last_layer == "cls" and not has_cls:
        raise UserError(f"--last-layer cls: models of type '{model.config.family}' have no token for the sentence")
    frame.check(options.max_length, model.config.max_length)
    texts = {lang: _read(path) for lang, path in files.items()}
    reference = next(iter(texts), None)
    for lang, lines in texts.items():
        if not lines:
            raise UserError(f"{files[lang]}: no sentences")
        if len(lines) != len(texts[reference]):
            raise UserError(
                f"{files[lang]}: {len(lines)} sentences, but {files[reference]} has {len(texts[reference])}; "
                "line n must be the same sentence in all languages"
            )
    counts, done = {}, 0
    with meter(sum(map(len, texts.values())), "sentences") as tell:
        for lang, lines in texts.items():
            store, spans, counts[lang] = _prepare(lines, model, options, frame, files[lang])
            told = partial(lambda before, count: tell(before + count), done)
            vectors = embed(model, store, spans, last_first=options.last_layer == "cls", tell=told)
            done += len(lines)
            _check(vectors, files[lang])
            write_array(out / f"{lang}.lengths.npy", (spans[:, 1] - spans[:, 0]).astype("<i4"))
            write_array(out / f"{lang}.npy", vectors)
    for lang, count in counts.items():
        _warn(files[lang], count, options)
    return counts


def _read(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8", newline="\n") as text:
            return [line for _, line in numbered(text, str(path))]
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror}") from None


def _prepare(
    lines: list[str], model: Loaded, options: Options, frame: Frame, path: Path
) -> tuple[Store, np.ndarray, Counts]:
    """Token numbers with special tokens, and the span of each sentence that counts."""
    room, counts = options.max_length - frame.size, Counts(len(lines))
    examples, spans = [], []
    for start in range(0, len(lines), _TOKENISED):
        some = lines[start : start + _TOKENISED]
        for encoding in model.tokenizer.encode_batch_fast(some, add_special_tokens=False):
            ids = encoding.ids
            counts.cut += len(ids) > room
            counts.empty += not ids
            if not ids and (options.special_tokens == "exclude" or not frame.size):
                raise UserError(
                    f"{path}, line {len(spans) + 1}: no words to average; drop the sentence in all languages"
                )
            examples.append(np.array([*frame.before, *ids[:room], *frame.after], dtype=np.int64))
            inside = (len(frame.before), len(examples[-1]) - len(frame.after))
            spans.append(inside if options.special_tokens == "exclude" else (0, len(examples[-1])))
    return make_store(model, examples), np.array(spans, dtype=np.int64), counts


def _warn(path: Path, counts: Counts, options: Options) -> None:
    if counts.cut:
        log.warning("%s: %d of %d sentences cut at %d tokens", path, counts.cut, counts.sentences, options.max_length)
    if counts.empty:
        words = "%s: %d of %d lines have no words; their vectors are the special tokens'"
        log.warning(words, path, counts.empty, counts.sentences)


def _check(vectors: np.ndarray, path: Path) -> None:
    finite = np.isfinite(vectors)
    if not finite.all():
        layer, row, _ = np.argwhere(~finite)[0].tolist()
        raise UserError(
            f"{path}, line {row + 1}: layer {layer} has numbers that are not finite; "
            "the weights are damaged, or too large for this precision (try --precision fp32)"
        )
