"""The parts of a small layer that are no products, compiled: one pass over memory each, for one thread of the CPU.

PyTorch without MKL spends more on attention, GELU, norms and sums over a few hundred tokens than on the products
between them. The kernels get all arrays from the caller and are compiled on import for float32; the machine code is
kept beside this file. Sums may be taken in another order than PyTorch's: results agree to rounding, not to the bit.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types

from crossalign.engine import ops

# Sums may be reordered, which vector registers need; NaN and infinity mean what they always do.
_LOOSE = {"reassoc", "contract", "arcp", "nsz"}
_ROW, _GRID = types.float32[::1], types.float32[:, ::1]
_PLACES = types.int64[::1]

_LOG2_E, _LN2_HIGH, _LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
_HALF, _ONE, _LEAST = np.float32(0.5), np.float32(1.0), np.float32(-87.0)
_TAYLOR = tuple(np.float32(value) for value in (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6))
# Abramowitz and Stegun 7.1.26, the tail of the normal distribution with an error of 7.5e-8.
_TAIL_P = np.float32(0.3275911 / 2**0.5)
_TAIL = tuple(np.float32(value / 2) for value in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592))
_DENSITY = np.float32((2 * np.pi) ** -0.5)


def _kernel(*arguments: types.Type):
    # Where PyTorch is quick itself, nothing calls these, and an import need not wait for the compiler.
    signature = types.void(*arguments) if ops.SLOW_PATHS else None

    def compiled(function):
        settings = {"nogil": True, "error_model": "numpy", "fastmath": _LOOSE}
        try:
            return numba.njit(signature, cache=True, **settings)(function)
        except RuntimeError:  # no folder that can be written: compiled anew in each process
            return numba.njit(signature, **settings)(function)

    return compiled


@numba.njit(inline="always")
def _exp_parts(value):
    """exp(value) = first * 2**second, for value <= 0."""
    value = max(value, _LEAST)
    power = np.floor(value * _LOG2_E + _HALF)
    rest = value - power * _LN2_HIGH - power * _LN2_LOW
    series = _TAYLOR[0]
    series = series * rest + _TAYLOR[1]
    series = series * rest + _TAYLOR[2]
    series = series * rest + _TAYLOR[3]
    series = series * rest + _TAYLOR[4]
    series = series * rest + _HALF
    series = series * rest + _ONE
    return series * rest + _ONE, np.int32(power)


@numba.njit(inline="always")
def _exp_row(values, count, powers, scales):
    """values[:count] = exp(values[:count]); `powers` and `scales` are the same memory as integers and as floats."""
    for i in range(count):
        values[i], power = _exp_parts(values[i])
        powers[i] = np.int32((power + np.int32(127)) << np.int32(23))
    for i in range(count):
        values[i] *= scales[i]


@_kernel(_GRID, _ROW, _GRID)
def gelu(up, bias, inner):
    """inner = GELU(up + bias); `up` becomes its derivative."""
    tokens, width = up.shape
    exps = np.empty(width, np.float32)
    powers = np.empty(width, np.int32)
    scales = powers.view(np.float32)
    for t in range(tokens):
        x, out = up[t], inner[t]
        for c in range(width):
            x[c] += bias[c]
            exps[c] = -_HALF * x[c] * x[c]
        _exp_row(exps, width, powers, scales)
        for c in range(width):
            value = x[c]
            near = _ONE / (_ONE + _TAIL_P * abs(value))
            tail = _TAIL[0]
            tail = tail * near + _TAIL[1]
            tail = tail * near + _TAIL[2]
            tail = tail * near + _TAIL[3]
            tail = (tail * near + _TAIL[4]) * near * exps[c]
            below = _ONE - tail if value > 0 else tail
            out[c] = value * below
            x[c] = below + value * _DENSITY * exps[c]


@_kernel(_GRID, _GRID, _ROW, types.boolean)
def gelu_backward(grad, slope, bias_grad, fresh):
    """grad *= slope, and its column sums are the gradient of the bias."""
    tokens, width = grad.shape
    if fresh:
        bias_grad[:] = 0
    for t in range(tokens):
        for c in range(width):
            grad[t, c] *= slope[t, c]
            bias_grad[c] += grad[t, c]


@_kernel(_GRID, _GRID, _ROW, _ROW, _ROW, types.float32, _ROW, _GRID)
def add_norm(x, added, added_bias, weight, bias, eps, inverse, out):
    """out = LayerNorm(x + added + added_bias); `added` becomes the normalised sum, `inverse` 1 / its deviation."""
    tokens, width = x.shape
    for t in range(tokens):
        total = np.float32(0)
        for c in range(width):
            added[t, c] += x[t, c] + added_bias[c]
            total += added[t, c]
        mean = total / np.float32(width)
        total = np.float32(0)
        for c in range(width):
            added[t, c] -= mean
            total += added[t, c] * added[t, c]
        inverse[t] = _ONE / np.sqrt(total / np.float32(width) + eps)
        for c in range(width):
            added[t, c] *= inverse[t]
            out[t, c] = added[t, c] * weight[c] + bias[c]


@_kernel(_GRID, _GRID, _ROW, _ROW, _ROW, _ROW, _ROW, types.boolean)
def norm_backward(grad, normal, inverse, weight, weight_grad, bias_grad, added_grad, fresh):
    """`grad` becomes that of the sum before the norm; also those of the norm and of the bias in the sum."""
    tokens, width = grad.shape
    if fresh:
        weight_grad[:] = 0
        bias_grad[:] = 0
        added_grad[:] = 0
    for t in range(tokens):
        plain = np.float32(0)
        scaled = np.float32(0)
        for c in range(width):
            value = grad[t, c]
            weight_grad[c] += value * normal[t, c]
            bias_grad[c] += value
            grad[t, c] = value * weight[c]
            plain += grad[t, c]
            scaled += grad[t, c] * normal[t, c]
        plain /= np.float32(width)
        scaled /= np.float32(width)
        for c in range(width):
            grad[t, c] = (grad[t, c] - plain - normal[t, c] * scaled) * inverse[t]
            added_grad[c] += grad[t, c]


@numba.njit(fastmath=_LOOSE, error_model="numpy", inline="always")
def _combine(factors, count, rows, width, out):
    """out[:width] = factors[:count] @ rows[:count, :width]; `count` is a multiple of 8.

    Eight rows at a time: a sum in memory would be read and written once for each of them.
    """
    for c in range(width):
        out[c] = 0
    for k in range(0, count, 8):
        f0, f1, f2, f3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        f4, f5, f6, f7 = factors[k + 4], factors[k + 5], factors[k + 6], factors[k + 7]
        for c in range(width):
            low = f0 * rows[k, c] + f1 * rows[k + 1, c] + f2 * rows[k + 2, c] + f3 * rows[k + 3, c]
            high = f4 * rows[k + 4, c] + f5 * rows[k + 5, c] + f6 * rows[k + 6, c] + f7 * rows[k + 7, c]
            out[c] += low + high


@numba.njit(inline="always")
def _longest(starts):
    longest = 0
    for s in range(len(starts) - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    return longest


@numba.njit(inline="always")
def _copy(source, first, count, column, size, rows):
    """rows[:count, :size] from a part of `source`, and zeros up to the next multiple of 8."""
    for j in range(count):
        line, row = source[first + j][column : column + size], rows[j]
        for c in range(size):
            row[c] = line[c]
    for j in range(count, (count + 7) // 8 * 8):
        rows[j] = 0


@numba.njit(inline="always")
def _turn(source, first, count, column, size, rows):
    """rows[:size, :count], the same turned."""
    for j in range(count):
        line = source[first + j][column : column + size]
        for c in range(size):
            rows[c, j] = line[c]


@_kernel(_GRID, _ROW, _PLACES, types.int64, _ROW, _GRID)
def attend(qkv, bias, starts, heads, weights, out):
    """Attention of sequences that lie between two of `starts`; `qkv` gets its bias added, where there is one.

    `weights` are those of attention: for each sequence and head a square. Heads have a multiple of 8 neurons.
    """
    hidden = out.shape[1]
    size = hidden // heads
    scale = np.float32(1 / np.sqrt(size))
    room = _longest(starts) + 8
    keys, values = np.empty((size, room), np.float32), np.empty((room, size), np.float32)
    query, row = np.empty(size, np.float32), np.empty(room, np.float32)
    powers = np.empty(room * room, np.int32)
    scales = powers.view(np.float32)
    if len(bias):
        for t in range(starts[-1]):
            line = qkv[t]
            for c in range(3 * hidden):
                line[c] += bias[c]
    place = 0
    for s in range(len(starts) - 1):
        first, count = starts[s], starts[s + 1] - starts[s]
        filled = (count + 7) // 8 * 8
        for h in range(heads):
            column = h * size
            _turn(qkv, first, count, hidden + column, size, keys)
            _copy(qkv, first, count, 2 * hidden + column, size, values)
            square = weights[place : place + count * count]
            for i in range(count):
                line = qkv[first + i][column : column + size]
                for c in range(size):
                    query[c] = line[c] * scale
                scores = square[i * count : (i + 1) * count]
                _combine(query, size, keys, count, scores)
                most = scores[0]
                for j in range(count):
                    most = max(most, scores[j])
                for j in range(count):
                    scores[j] -= most
            _exp_row(square, count * count, powers, scales)
            for i in range(count):
                scores = square[i * count : (i + 1) * count]
                total = np.float32(0)
                for j in range(count):
                    total += scores[j]
                total = _ONE / total
                for j in range(count):
                    scores[j] *= total
                    row[j] = scores[j]
                row[count:filled] = 0
                _combine(row, filled, values, size, out[first + i][column : column + size])
            place += count * count


@_kernel(_GRID, _GRID, _PLACES, types.int64, _ROW, _GRID, _ROW, types.boolean)
def attend_backward(grad, qkv, starts, heads, weights, dqkv, bias_grad, fresh):
    """The gradient of `attend`: `dqkv`, and its column sums for the bias, where there is one."""
    hidden = grad.shape[1]
    size = hidden // heads
    scale = np.float32(1 / np.sqrt(size))
    room = _longest(starts) + 8
    values = np.empty((size, room), np.float32)
    queries, keys = np.empty((room, size), np.float32), np.empty((room, size), np.float32)
    given, row = np.empty((room, size), np.float32), np.empty(room, np.float32)
    turned, dturned = np.empty((room, room), np.float32), np.empty((room, room), np.float32)
    place = 0
    for s in range(len(starts) - 1):
        first, count = starts[s], starts[s + 1] - starts[s]
        filled = (count + 7) // 8 * 8
        for h in range(heads):
            column = h * size
            _copy(qkv, first, count, column, size, queries)
            _copy(qkv, first, count, hidden + column, size, keys)
            _turn(qkv, first, count, 2 * hidden + column, size, values)
            _copy(grad, first, count, column, size, given)
            for i in range(count):
                kept = weights[place : place + count]
                _combine(given[i], size, values, count, row)
                mean = np.float32(0)
                for j in range(count):
                    mean += row[j] * kept[j]
                for j in range(count):
                    row[j] = (row[j] - mean) * kept[j] * scale
                row[count:filled] = 0
                for j in range(count):
                    turned[j, i] = kept[j]
                    dturned[j, i] = row[j]
                _combine(row, filled, keys, size, dqkv[first + i][column : column + size])
                place += count
            for j in range(count):
                turned[j, count:filled] = 0
                dturned[j, count:filled] = 0
                line = dqkv[first + j]
                _combine(dturned[j], filled, queries, size, line[hidden + column : hidden + column + size])
                _combine(turned[j], filled, given, size, line[2 * hidden + column : 2 * hidden + column + size])
    if len(bias_grad):
        if fresh:
            bias_grad[:] = 0
        for t in range(starts[-1]):
            line = dqkv[t]
            for c in range(3 * hidden):
                bias_grad[c] += line[c]
