"""The loops over all cells (source word, target word) of all sentence pairs, compiled, and the threads that share them.

One cell holds the rank of its target word within the row of its source word, so that the probability of a cell is
`prob[row_start[source word] + rank]`: array access only. Kernels over sentences write to their own sentences, kernels
over source words to their own rows, so no two of them ever add to the same number. They get their scratch arrays from
the caller, because allocating inside makes them slower to compile.
"""

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np


def kernel(function: Callable) -> Callable:
    """Compile a function that runs without Python's lock, and keep the machine code for the next run if possible."""
    settings: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError:
        # Neither the source folder nor the user's cache folder can be written: compile anew in each run.
        return numba.njit(**settings)(function)


def default_threads() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Runs a kernel over a list of argument tuples and returns the results in the order of the list.

    No two tasks write to the same number and sums are taken over whole arrays afterwards, so any number of threads and
    any division into tasks gives the same bits.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or default_threads()
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def run(self, function: Callable, tasks: Iterable[tuple]) -> list[Any]:
        """Call `function(*task)` for every task."""
        if self._pool is None:
            return [function(*task) for task in tasks]
        return list(self._pool.map(lambda task: function(*task), tasks))

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def even_ranges(work: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Cut positions 0..len(work) into consecutive ranges of about `size` units of work each."""
    total = np.concatenate(([0], np.cumsum(work, dtype=np.int64)))
    ranges, low = [], 0
    while low < len(work):
        high = int(np.searchsorted(total, total[low] + size, side="left"))
        high = min(max(high, low + 1), len(work))
        ranges.append((low, high))
        low = high
    return ranges


# Columns of `sentences`, one row of 64 bytes per sentence pair: a row is one line of cache, and rows are visited in any
# order. First cell, first source and target word, their numbers, the size, and where the prior of that size begins.
CELL, SOURCE, TARGET, N, M, SIZE, OF_J, OF_I = range(8)


@kernel
def distinct_targets(low, high, seen, met, lengths, type_start, place_sentence, sentences, target):
    """For source words low..high: the target words seen with each, in order of appearance, and how many.

    `seen` holds -1 for every target word; returns how much of `met` was filled.
    """
    filled = 0
    for word in range(low, high):
        before = filled
        for place in range(type_start[word], type_start[word + 1]):
            pair = sentences[place_sentence[place]]
            for position in range(pair[TARGET], pair[TARGET] + pair[M]):
                other = target[position]
                if seen[other] != word:
                    seen[other] = word
                    met[filled] = other
                    filled += 1
        lengths[word - low] = filled - before
    return filled


@kernel
def fill_cells(low, high, rank, cells, first_cell, first, last, order, place_sentence, sentences, target, row_start,
               row_target):  # fmt: skip
    """Write the ranks of all cells whose source word is in low..high and whose occurrence is in this block."""
    for word in range(low, high):
        if first[word] == last[word]:
            continue
        begin = row_start[word]
        for entry in range(begin, row_start[word + 1]):
            rank[row_target[entry]] = entry - begin
        for place in range(first[word], last[word]):
            pair = sentences[place_sentence[place]]
            cell = pair[CELL] - first_cell + (order[place] - pair[SOURCE]) * pair[M]
            for j in range(pair[M]):
                cells[cell + j] = rank[target[pair[TARGET] + j]]


@kernel
def expect(low, high, total, distance, cells, first_cell, sentences, source, target, row_start, prob, null_prob, rise,
           fall, grow, shrink, null, inverse, sums):  # fmt: skip
    """The E-step for sentences low..high: 1 / p(target word | source sentence) for each target word.

    Into `sums` go, per sentence, the log-likelihood, the expected number of unlinked words, and the expected sum of
    -|i/n - j/m|.
    """
    for sentence in range(low, high):
        likelihood, unlinked, feature = 0.0, 0.0, 0.0
        pair = sentences[sentence]
        a, b, n, m, size = pair[SOURCE], pair[TARGET], pair[N], pair[M], pair[SIZE]
        cell, of_i, of_j = pair[CELL] - first_cell, pair[OF_I], pair[OF_J]
        step = 1.0 / m
        for j in range(m):
            total[j] = null[size] * null_prob[target[b + j]]
            distance[j] = 0.0
        up, down = rise[of_j : of_j + m], fall[of_j : of_j + m]
        for i in range(n):
            word = source[a + i]
            given, ranks = prob[row_start[word] : row_start[word + 1]], cells[cell : cell + m]
            split = (i + 1) * m // n
            # fast_align measures the observed distance with target positions from 0 (the prior counts from 1);
            # the same here, because the tension it arrives at depends on it.
            place = (i + 1) / n
            factor = shrink[of_i + i]
            for j in range(split):
                weight = given[ranks[j]] * up[j] * factor
                total[j] += weight
                distance[j] += weight * (place - j * step)
            factor = grow[of_i + i]
            for j in range(split, m):
                weight = given[ranks[j]] * down[j] * factor
                total[j] += weight
                distance[j] += weight * abs(place - j * step)
            cell += m
        for j in range(m):
            share = 1.0 / total[j]
            inverse[b + j] = share
            likelihood += math.log(total[j])
            feature -= distance[j] * share
            unlinked += null[size] * null_prob[target[b + j]] * share
        sums[0, sentence], sums[1, sentence], sums[2, sentence] = likelihood, unlinked, feature


@kernel
def count_links(low, high, cells, first_cell, first, last, order, place_sentence, sentences, row_start, rise, fall,
                grow, shrink, inverse, counts):  # fmt: skip
    """The expected counts of source words low..high, each still to be multiplied by its probability."""
    for word in range(low, high):
        row = counts[row_start[word] : row_start[word + 1]]
        for place in range(first[word], last[word]):
            pair = sentences[place_sentence[place]]
            m = pair[M]
            i = order[place] - pair[SOURCE]
            cell = pair[CELL] - first_cell + i * m
            ranks, share = cells[cell : cell + m], inverse[pair[TARGET] : pair[TARGET] + m]
            up, down = rise[pair[OF_J] : pair[OF_J] + m], fall[pair[OF_J] : pair[OF_J] + m]
            split = (i + 1) * m // pair[N]
            factor = shrink[pair[OF_I] + i]
            for j in range(split):
                row[ranks[j]] += up[j] * factor * share[j]
            factor = grow[pair[OF_I] + i]
            for j in range(split, m):
                row[ranks[j]] += down[j] * factor * share[j]


@kernel
def digamma_parts(x):
    """Two numbers y, r with psi(x) = log(y) + r, so that exp(psi(x)) needs no logarithm."""
    # psi(x) = psi(x + k) - (1/x + ... + 1/(x+k-1)), the sum as one fraction; then the asymptotic series.
    above, below = 0.0, 1.0
    while x < 7.0:
        above = above * x + below
        below *= x
        x += 1.0
    z = 1.0 / (x * x)
    tail = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z / 132))))
    return x, -0.5 / x - tail - above / below


@kernel
def normalise(low, high, row_start, prob, counts, alpha):
    """The M-step for rows low..high: counts become probabilities, or with alpha > 0 exp(digamma) weights.

    The latter is the mean-field update under a symmetric Dirichlet prior: exp(psi(c + alpha) - psi(sum of c + alpha)).
    """
    for word in range(low, high):
        total = 0.0
        for entry in range(row_start[word], row_start[word + 1]):
            prob[entry] *= counts[entry]
            counts[entry] = 0.0
            total += prob[entry] + alpha
        if alpha == 0.0:
            for entry in range(row_start[word], row_start[word + 1]):
                prob[entry] /= total if total > 0.0 else 1.0
            continue
        y, shift = digamma_parts(total)
        shift += math.log(y)
        for entry in range(row_start[word], row_start[word + 1]):
            y, rest = digamma_parts(prob[entry] + alpha)
            prob[entry] = y * math.exp(rest - shift)


@kernel
def best_links(low, high, total, best, cells, first_cell, sentences, source, target, row_start, prob, null_prob, rise,
               fall, grow, shrink, null, use_null, link, score):  # fmt: skip
    """The most probable source position of each target word, or -1, and each sentence's log-likelihood."""
    for sentence in range(low, high):
        pair = sentences[sentence]
        a, b, n, m, size = pair[SOURCE], pair[TARGET], pair[N], pair[M], pair[SIZE]
        cell, of_i, of_j = pair[CELL] - first_cell, pair[OF_I], pair[OF_J]
        for j in range(m):
            total[j] = null[size] * null_prob[target[b + j]]
            best[j] = total[j] if use_null else -1.0
            link[b + j] = -1
        up, down = rise[of_j : of_j + m], fall[of_j : of_j + m]
        for i in range(n):
            word = source[a + i]
            given, ranks = prob[row_start[word] : row_start[word + 1]], cells[cell : cell + m]
            split = (i + 1) * m // n
            for j in range(m):
                weight = given[ranks[j]] * (up[j] * shrink[of_i + i] if j < split else down[j] * grow[of_i + i])
                total[j] += weight
                if weight > best[j]:
                    best[j] = weight
                    link[b + j] = i
            cell += m
        likelihood = 0.0
        for j in range(m):
            likelihood += math.log(total[j])
        score[sentence] = likelihood
