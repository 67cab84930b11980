"""Vectors of word pairs: words that translate each other, and words that do not (`adjust`, section 9).

Which pairs are taken depends on the pool, its links and the seed only, so that all models are measured on the same.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossalign.alignment.bitext import read_pool
from crossalign.embedding.model import Loaded
from crossalign.embedding.states import embed, make_store
from crossalign.engine.pairs import Row, Sample, parse_links, read_lines, sample_lines
from crossalign.engine.seeds import numpy_generator
from crossalign.engine.tokens import Frame, word_pieces
from crossalign.runtime.errors import UserError
from crossalign.runtime.meter import meter

log = logging.getLogger("embed")


@dataclass(frozen=True)
class WordPair:
    """Two linked words: the line of the pool, counted from 1, its two sentences, and the places of the words."""

    line: int
    sentences: tuple[Sequence[str], Sequence[str]]
    places: tuple[int, int]


def sample_pairs(
    pool: Path, links: Path, count: int, seed: int, skip_samples: Sequence[tuple[int, int]] = ()
) -> list[WordPair]:
    """`count` links at random, from as many sentences as possible, filtered as for the adjustment.

    Left out are the samples (sentence pairs, seed) that models were adjusted on. Pairs of the same line are neighbours
    in the result.
    """
    if count < 1:
        raise UserError(f"--pairs {count}: at least 1")
    # Not parsed before they are needed: few of the lines are.
    linked = list(read_lines(links))
    usable = np.ones(len(linked), dtype=bool)
    for pairs, run in skip_samples:
        usable[sample_lines(len(linked), pairs, run)] = False
    left = np.flatnonzero(usable)
    order = numpy_generator(seed, "word pairs").permutation(left)
    # Twice as many lines as pairs nearly always have enough links; if not, all lines are tried.
    for lines in (order[: 2 * count], order):
        if chosen := _choose(_candidates(pool, links, linked, lines, seed), count):
            return chosen
    raise UserError(
        f"{links}: fewer than {count} usable links (one to one, between different words) on the {len(left)} of "
        f"{len(linked)} lines that are not left out; lower --pairs or --skip-sample"
    )


def _candidates(pool: Path, path: Path, links: list[bytes], lines: np.ndarray, seed: int) -> list[list[WordPair]]:
    """The usable links of each line, in random order; the lines in the order given."""
    wanted = {int(line): place for place, line in enumerate(lines)}
    found: list[list[WordPair]] = [[] for _ in wanted]
    checked = Sample([], len(links), str(path))
    read = 0
    for read, sentences in enumerate(read_pool(pool), 1):
        if (place := wanted.get(read - 1)) is not None:
            row = Row(read, *sentences, parse_links(links[read - 1], path, read))
            usable = checked.usable(row, *sentences)
            order = numpy_generator(seed, "link", read).permutation(len(usable))
            found[place] = [WordPair(read, sentences, usable[k]) for k in order]
    if read != len(links):
        raise UserError(f"{path} has {len(links)} lines but {pool} has {read}; align this pool again")
    return found


def _choose(candidates: list[list[WordPair]], count: int) -> list[WordPair]:
    """One link of each line, then a second one, until there are enough; none if there never are."""
    taken = [0] * len(candidates)
    rest, depth = count, 0
    while rest and any(len(links) > depth for links in candidates):
        for line, links in enumerate(candidates):
            if rest and len(links) > depth:
                taken[line] += 1
                rest -= 1
        depth += 1
    return [] if rest else [pair for links, most in zip(candidates, taken, strict=True) for pair in links[:most]]


def unrelated_partners(lines: Sequence[int], seed: int) -> np.ndarray:
    """For each pair the pair whose second word it gets instead of its own: always one of another line.

    The same words in other company: what sets the two kinds apart cannot be how frequent their words are.
    """
    most, count = max(Counter(lines).values()), len(lines)
    if 2 * most > count:
        raise UserError(
            f"{most} of {count} pairs come from one sentence pair; unrelated pairs need words of different sentences"
        )
    # Lines lie together, so a shift by at least the largest line leaves every line.
    shift = int(numpy_generator(seed, "unrelated").integers(most, count - most + 1))
    return (np.arange(count) + shift) % count


def embed_pairs(
    model: Loaded, pairs: Sequence[WordPair], seed: int, layer: int | None = None, max_length: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of the related and of the unrelated pairs, pairs x 2 x neurons each; `layer` None is the last.

    A word's vector is the mean of its sub-words. Pairs with a word beyond `max_length` tokens are left out.
    """
    frame = Frame.of(model.tokenizer)
    max_length = max_length or model.config.max_length
    frame.check(max_length, model.config.max_length)
    layers = model.config.layers
    layer = layers if layer is None else layer
    if not 0 <= layer <= layers:
        raise UserError(f"--layer {layer}: the model has layers 0 (embeddings) to {layers}")
    split = word_pieces(model.tokenizer, (words for pair in pairs for words in pair.sentences), max_length)
    kept, examples, spans = [], [], []
    for pair in pairs:
        sides = [_encode(split(words), place, frame, max_length)
                 for words, place in zip(pair.sentences, pair.places, strict=True)]  # fmt: skip
        if None in sides:
            continue
        kept.append(pair.line)
        for ids, span in sides:
            examples.append(ids)
            spans.append(span)
    if left_out := len(pairs) - len(kept):
        log.warning("%d of %d pairs left out: a word stands beyond %d tokens", left_out, len(pairs), max_length)
    if not kept:
        raise UserError(f"no pair of words lies within {max_length} tokens; use a larger --max-length")
    partners = unrelated_partners(kept, seed)
    store = make_store(model, examples)
    with meter(len(store), "sentences") as tell:
        vectors = embed(model, store, np.array(spans, dtype=np.int64), layer, tell=tell)[0]
    related = vectors.reshape(len(kept), 2, -1)
    unrelated = np.stack([related[:, 0], related[partners, 1]], axis=1)
    if not np.isfinite(related).all():
        raise UserError("the vectors have numbers that are not finite; the weights are damaged (try --precision fp32)")
    return related, unrelated


def _encode(
    pieces: Sequence[list[int]], place: int, frame: Frame, max_length: int
) -> tuple[list[int], tuple[int, int]] | None:
    """A sentence with its special tokens and the span of one word in it; None where the word is cut off."""
    ids = list(frame.before)
    start = stop = 0
    for number, word in enumerate(pieces):
        if number == place:
            start, stop = len(ids), len(ids) + len(word)
        ids += word
    room = max_length - len(frame.after)
    return None if stop > room else ([*ids[:room], *frame.after], (start, stop))
