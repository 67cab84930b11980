"""Sentence embeddings of text files: one array of layers x sentences x neurons per file, and the lengths of sentences.

Sentences pass in windows. While one is on the device the next is tokenised and the last one written, so memory does
not depend on the number of sentences. Within a window sentences are sorted by length; its rows are neighbours in the
file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from crossalign.data.lines import numbered
from crossalign.embedding.arrays import ArrayWriter
from crossalign.embedding.model import Loaded
from crossalign.embedding.states import embed, make_store
from crossalign.engine.batches import Store
from crossalign.engine.tokens import Frame, named_token
from crossalign.runtime.errors import UserError
from crossalign.runtime.meter import meter

log = logging.getLogger("embed")

# Bytes of a window's result, and most sentences in it. A GPU holds one window and fills itself better with a large one;
# a CPU has up to four of them in host memory at a time, and its batches are small.
_WINDOW_BYTES = {"cuda": 256 << 20, "cpu": 48 << 20}
_WINDOW_SENTENCES = 8192
# Sentences that are tokenised at a time: a tokenizer's answer takes many times the memory of its token numbers.
_TOKENISED = 512


@dataclass(frozen=True)
class Options:
    """How a sentence becomes a vector."""

    max_length: int = 200
    special_tokens: str = "exclude"
    last_layer: str = "mean"

    def __post_init__(self) -> None:
        if self.special_tokens not in ("include", "exclude"):
            raise UserError(f"special tokens '{self.special_tokens}': include or exclude")
        if self.last_layer not in ("mean", "cls"):
            raise UserError(f"last layer '{self.last_layer}': mean or cls")


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
    totals = {lang: count_lines(path) for lang, path in files.items()}
    reference = next(iter(totals), None)
    for lang, total in totals.items():
        if total == 0:
            raise UserError(f"{files[lang]}: no sentences")
        if total != totals[reference]:
            raise UserError(
                f"{files[lang]}: {total} sentences, but {files[reference]} has {totals[reference]}; "
                "line n must be the same sentence in all languages"
            )
    counts = {lang: Counts() for lang in files}
    size = _window_size(model)
    prepared = (
        (lang, *_prepare(window, model, options, frame, counts[lang], files[lang]))
        for lang, path in files.items()
        for window in _windows(path, size)
    )
    done = 0
    with ArrayWriter() as writer, ThreadPoolExecutor(1) as reader, meter(sum(totals.values()), "sentences") as tell:
        coming = reader.submit(next, prepared, None)
        while window := coming.result():
            coming = reader.submit(next, prepared, None)
            lang, store, spans = window
            if lang != writer.name:
                shape = (model.config.layers + 1, totals[lang], model.config.hidden)
                lengths = np.zeros(totals[lang], dtype=np.int32)
                writer.begin(lang, out / f"{lang}.npy", shape, {out / f"{lang}.lengths.npy": lengths})
            told = partial(lambda before, count: tell(before + count), done)
            result = torch.from_numpy(embed(model, store, spans, last_first=options.last_layer == "cls", tell=told))
            done += len(spans)
            _check(result, writer.rows, files[lang])
            # A file that grew while it was read has more rows than lengths; the writer refuses it at its end.
            room = lengths[writer.rows : writer.rows + len(spans)]
            room[:] = (spans[:, 1] - spans[:, 0])[: len(room)]
            writer.add(result)
    for lang, count in counts.items():
        _warn(files[lang], count, options)
    return counts


def _window_size(model: Loaded) -> int:
    """Sentences of a window."""
    most = _WINDOW_BYTES.get(model.device.type, _WINDOW_BYTES["cpu"])
    return max(1, min(_WINDOW_SENTENCES, most // (4 * (model.config.layers + 1) * model.config.hidden)))


def count_lines(path: Path) -> int:
    """Lines of a file; the last one may lack its end."""
    try:
        with path.open("rb") as stream:
            return sum(1 for _ in stream)
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror}") from None


def _windows(path: Path, size: int) -> Iterator[list[tuple[int, str]]]:
    with path.open(encoding="utf-8", newline="\n") as text:
        lines = numbered(text, str(path))
        while window := list(islice(lines, size)):
            yield window


def _prepare(
    window: list[tuple[int, str]], model: Loaded, options: Options, frame: Frame, counts: Counts, path: Path
) -> tuple[Store, np.ndarray]:
    """Token numbers with special tokens, and the span of each sentence that counts."""
    room = options.max_length - frame.size
    examples, spans = [], []
    for (number, _), ids in zip(window, _token_numbers(window, model), strict=True):
        counts.sentences += 1
        counts.cut += len(ids) > room
        counts.empty += not ids
        if not ids and (options.special_tokens == "exclude" or not frame.size):
            raise UserError(f"{path}, line {number}: no words to average; drop the sentence in all languages")
        examples.append(np.array([*frame.before, *ids[:room], *frame.after], dtype=np.int64))
        inside = (len(frame.before), len(examples[-1]) - len(frame.after))
        spans.append(inside if options.special_tokens == "exclude" else (0, len(examples[-1])))
    return make_store(model, examples), np.array(spans, dtype=np.int64)


def _token_numbers(window: list[tuple[int, str]], model: Loaded) -> Iterator[list[int]]:
    for start in range(0, len(window), _TOKENISED):
        lines = [line for _, line in window[start : start + _TOKENISED]]
        for encoding in model.tokenizer.encode_batch_fast(lines, add_special_tokens=False):
            yield encoding.ids


def _warn(path: Path, counts: Counts, options: Options) -> None:
    if counts.cut:
        log.warning("%s: %d of %d sentences cut at %d tokens", path, counts.cut, counts.sentences, options.max_length)
    if counts.empty:
        words = "%s: %d of %d lines have no words; their vectors are the special tokens'"
        log.warning(words, path, counts.empty, counts.sentences)


def _check(result: Tensor, start: int, path: Path) -> None:
    if not bool(torch.isfinite(result).all()):
        layer, row, _ = (~torch.isfinite(result)).nonzero()[0].tolist()
        raise UserError(
            f"{path}, line {start + row + 1}: layer {layer} has numbers that are not finite; "
            "the weights are damaged, or too large for this precision (try --precision fp32)"
        )
