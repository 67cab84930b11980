"""The parts of a small layer that are no products, compiled: one pass over memory each, for one thread of the CPU.

PyTorch without MKL spends more on attention, GELU, norms and sums over a few hundred tokens than on the products
between them. The kernels get all arrays from the caller and are compiled on import for float32; the machine code is
kept beside this file. Sums may be taken in another order than PyTorch's: results agree to rounding, not to the bit.
"""

from __future__ import annotations

import inspect

import numba
import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.np import arrayobj

from crossalign.engine import ops

# Sums may be reordered, which vector registers need; NaN and infinity mean what they always do.
_LOOSE = {"reassoc", "contract", "arcp", "nsz"}
_ROW, _GRID = types.float32[::1], types.float32[:, ::1]
_PLACES = types.int64[::1]

_LOG2_E, _LN2_HIGH, _LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
_ZERO, _HALF, _ONE, _LEAST = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(-87.0)
# Below all scores; its exponential is nearly nothing.
_FAR = np.float32(-1e30)
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


class _Lanes(types.Type):
    """Several floats that are computed with at once: LLVM has such types, Numba has not."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"float32 x {count}")


@extending.register_model(_Lanes)
class _LanesModel(extending.models.PrimitiveModel):
    def __init__(self, manager, lanes: _Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(ir.FloatType(), lanes.count))


_FOUR, _EIGHT = _Lanes(4), _Lanes(8)
_VECTOR = ir.VectorType(ir.FloatType(), 8)


def _lanes(result: types.Type, *kinds: types.Type | None):
    """A function for kernels, by what writes its instructions; an argument of kind None is an array."""

    def decorated(write):
        def typed(context, *given):
            arguments = [own if kind is None else kind for own, kind in zip(given, kinds, strict=True)]

            def code(context, builder, signature, values):
                pairs = zip(kinds, signature.args, values, strict=True)
                values = [
                    value if kind is not None else arrayobj.make_array(own)(context, builder, value).data
                    for kind, own, value in pairs
                ]
                return write(builder, *values)

            return result(*arguments), code

        # Numba passes arguments by what it sees here.
        typed.__name__, typed.__signature__ = write.__name__, inspect.signature(write)
        return extending.intrinsic(typed)

    return decorated


def _vectors_at(builder, data, place, count: int):
    return builder.bitcast(builder.gep(data, [place]), ir.VectorType(ir.FloatType(), count).as_pointer())


def _constant(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [float(np.float32(value))] * 8)


def _call(builder, name: str, result: ir.Type, *values, **flags):
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}"), values, **flags)


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _splat(builder, vector, lane: int = 0):
    mask = ir.Constant(ir.VectorType(ir.IntType(32), 8), [lane] * 8)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


@_lanes(types.float32, None, types.int64)
def _get(builder, data, place):
    return builder.load(builder.gep(data, [place]), align=4)


@_lanes(types.void, None, types.int64, types.float32)
def _put(builder, data, place, value):
    builder.store(value, builder.gep(data, [place]), align=4)


@_lanes(_FOUR, None, types.int64)
def _four(builder, data, place):
    return builder.load(_vectors_at(builder, data, place, 4), align=4)


@_lanes(_EIGHT, None, types.int64)
def _load(builder, data, place):
    return builder.load(_vectors_at(builder, data, place, 8), align=4)


@_lanes(types.void, None, types.int64, _EIGHT)
def _store(builder, data, place, vector):
    builder.store(vector, _vectors_at(builder, data, place, 8), align=4)


@_lanes(_EIGHT, types.float32)
def _all(builder, value):
    empty = ir.Constant(_VECTOR, ir.Undefined)
    return _splat(builder, builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0)))


def _lane(lane: int):
    return _lanes(_EIGHT, _FOUR)(lambda builder, vector: _splat(builder, vector, lane))


_first, _second, _third, _fourth = (_lane(lane) for lane in range(4))


@_lanes(_EIGHT, _EIGHT, _EIGHT, _EIGHT)
def _fma(builder, a, b, c):
    return _multiply_add(builder, a, b, c)


@_lanes(_EIGHT, _EIGHT, _EIGHT)
def _add(builder, a, b):
    return builder.fadd(a, b)


@_lanes(_EIGHT, _EIGHT, _EIGHT)
def _mul(builder, a, b):
    return builder.fmul(a, b)


@_lanes(_EIGHT, _EIGHT, _EIGHT)
def _div(builder, a, b):
    return builder.fdiv(a, b)


@_lanes(_EIGHT, _EIGHT)
def _abs(builder, vector):
    return _call(builder, "fabs.v8f32", _VECTOR, vector)


@_lanes(_EIGHT, _EIGHT, _EIGHT, _EIGHT)
def _where_positive(builder, vector, there, elsewhere):
    return builder.select(builder.fcmp_ordered(">", vector, _constant(0)), there, elsewhere)


@_lanes(_EIGHT, _EIGHT, _EIGHT)
def _larger(builder, a, b):
    return _call(builder, "maximum.v8f32", _VECTOR, a, b)


@_lanes(types.float32, _EIGHT)
def _top(builder, vector):
    return _call(builder, "vector.reduce.fmaximum.v8f32", ir.FloatType(), vector)


@_lanes(types.float32, _EIGHT)
def _sum(builder, vector):
    zero = ir.Constant(ir.FloatType(), 0.0)
    return _call(builder, "vector.reduce.fadd.v8f32", ir.FloatType(), zero, vector, fastmath=("reassoc",))


@_lanes(_EIGHT, _EIGHT)
def _exp(builder, value):
    """exp(value), for value <= 0; never below exp(-87)."""
    whole = ir.VectorType(ir.IntType(32), 8)
    value = _call(builder, "maximum.v8f32", _VECTOR, value, _constant(_LEAST))
    power = _multiply_add(builder, value, _constant(_LOG2_E), _constant(0.5))
    power = _call(builder, "floor.v8f32", _VECTOR, power)
    rest = _multiply_add(builder, power, _constant(-_LN2_HIGH), value)
    rest = _multiply_add(builder, power, _constant(-_LN2_LOW), rest)
    series = _constant(_TAYLOR[0])
    for factor in (*_TAYLOR[1:], 0.5, 1.0, 1.0):
        series = _multiply_add(builder, series, rest, _constant(factor))
    bits = _call(builder, "fptosi.sat.v8i32.v8f32", whole, power)
    bits = builder.shl(builder.add(bits, ir.Constant(whole, [127] * 8)), ir.Constant(whole, [23] * 8))
    return builder.fmul(series, builder.bitcast(bits, _VECTOR))


@_kernel(_GRID, _ROW, _GRID)
def gelu(up, bias, inner):
    """inner = GELU(up + bias); `up` becomes its derivative. Rows have a multiple of 8 numbers."""
    tokens, width = up.shape
    for t in range(tokens):
        for c in range(0, width, 8):
            place = t * width + c
            x = _add(_load(up, place), _load(bias, c))
            falling = _exp(_mul(_mul(x, x), _all(-_HALF)))
            near = _div(_all(_ONE), _fma(_all(_TAIL_P), _abs(x), _all(_ONE)))
            tail = _fma(_all(_TAIL[0]), near, _all(_TAIL[1]))
            tail = _fma(tail, near, _all(_TAIL[2]))
            tail = _fma(tail, near, _all(_TAIL[3]))
            tail = _mul(_mul(_fma(tail, near, _all(_TAIL[4])), near), falling)
            below = _where_positive(x, _fma(tail, _all(-_ONE), _all(_ONE)), tail)
            _store(inner, place, _mul(x, below))
            _store(up, place, _fma(_mul(x, _all(_DENSITY)), falling, below))


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


@numba.njit
def _product(a, a_place, a_row, b, b_place, b_row, depth, c, c_place, c_row, rows, columns):
    """c[:rows, :columns] = a[:rows, :depth] @ b[:depth, :columns]; `columns` is a multiple of 8.

    Each matrix begins at its place in an array and has so many numbers from one row to the next.
    """
    for i in range(0, rows, 4):
        # Beyond the last row it comes again, and what it gives is not stored.
        p0, p1 = a_place + i * a_row, a_place + min(i + 1, rows - 1) * a_row
        p2, p3 = a_place + min(i + 2, rows - 1) * a_row, a_place + min(i + 3, rows - 1) * a_row
        for j in range(0, columns, 8):
            s0, s1, s2, s3 = _all(_ZERO), _all(_ZERO), _all(_ZERO), _all(_ZERO)
            q = b_place + j
            for k in range(0, depth - 3, 4):
                f0, f1, f2, f3 = _four(a, p0 + k), _four(a, p1 + k), _four(a, p2 + k), _four(a, p3 + k)
                line = _load(b, q)
                s0, s1 = _fma(_first(f0), line, s0), _fma(_first(f1), line, s1)
                s2, s3 = _fma(_first(f2), line, s2), _fma(_first(f3), line, s3)
                line = _load(b, q + b_row)
                s0, s1 = _fma(_second(f0), line, s0), _fma(_second(f1), line, s1)
                s2, s3 = _fma(_second(f2), line, s2), _fma(_second(f3), line, s3)
                line = _load(b, q + 2 * b_row)
                s0, s1 = _fma(_third(f0), line, s0), _fma(_third(f1), line, s1)
                s2, s3 = _fma(_third(f2), line, s2), _fma(_third(f3), line, s3)
                line = _load(b, q + 3 * b_row)
                s0, s1 = _fma(_fourth(f0), line, s0), _fma(_fourth(f1), line, s1)
                s2, s3 = _fma(_fourth(f2), line, s2), _fma(_fourth(f3), line, s3)
                q += 4 * b_row
            for k in range(depth // 4 * 4, depth):
                line = _load(b, q)
                s0, s1 = _fma(_all(_get(a, p0 + k)), line, s0), _fma(_all(_get(a, p1 + k)), line, s1)
                s2, s3 = _fma(_all(_get(a, p2 + k)), line, s2), _fma(_all(_get(a, p3 + k)), line, s3)
                q += b_row
            _store_rows(c, c_place + i * c_row + j, c_row, rows - i, s0, s1, s2, s3)


@numba.njit
def _turned_product(a, a_place, a_row, b, b_place, b_row, depth, c, c_place, c_row, rows, columns):
    """c[:rows, :columns] = a[:depth, :rows].T @ b[:depth, :columns]; rows of `a` are filled to a multiple of 4."""
    for i in range(0, rows, 4):
        for j in range(0, columns, 8):
            s0, s1, s2, s3 = _all(_ZERO), _all(_ZERO), _all(_ZERO), _all(_ZERO)
            p, q = a_place + i, b_place + j
            for _ in range(depth):
                factors, line = _four(a, p), _load(b, q)
                s0, s1 = _fma(_first(factors), line, s0), _fma(_second(factors), line, s1)
                s2, s3 = _fma(_third(factors), line, s2), _fma(_fourth(factors), line, s3)
                p += a_row
                q += b_row
            _store_rows(c, c_place + i * c_row + j, c_row, rows - i, s0, s1, s2, s3)


@numba.njit(inline="always")
def _store_rows(c, place, row, count, s0, s1, s2, s3):
    _store(c, place, s0)
    if count > 1:
        _store(c, place + row, s1)
    if count > 2:
        _store(c, place + 2 * row, s2)
    if count > 3:
        _store(c, place + 3 * row, s3)


@numba.njit(inline="always")
def filled(count):
    """The next multiple of 8, at least 8: rows of attention's weights have so many numbers."""
    return (max(count, 1) + 7) // 8 * 8


@numba.njit(inline="always")
def _longest(starts):
    longest = 0
    for s in range(len(starts) - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    return filled(longest)


@numba.njit
def _turn(source, place, row, count, size, turned):
    """turned[:size, :count] = source[:count, :size].T, and zeros up to the next multiple of 8."""
    width = filled(count)
    for c in range(size):
        for j in range(count):
            _put(turned, c * width + j, _get(source, place + j * row + c))
        for j in range(count, width):
            _put(turned, c * width + j, _ZERO)


@_kernel(_GRID, _ROW, _PLACES, types.int64, _ROW, _GRID)
def attend(qkv, bias, starts, heads, weights, out):
    """Attention of sequences that lie between two of `starts`; `qkv` gets its bias added, where there is one.

    `weights` are those of attention: for each sequence and head count x filled(count). Heads have a multiple of 8
    neurons.
    """
    hidden = out.shape[1]
    width, size = 3 * hidden, hidden // heads
    scale = np.float32(1 / np.sqrt(size))
    keys = np.empty(size * _longest(starts), np.float32)
    if len(bias):
        for t in range(starts[-1]):
            line = qkv[t]
            for c in range(width):
                line[c] += bias[c]
    place = 0
    for s in range(len(starts) - 1):
        first, count = starts[s], starts[s + 1] - starts[s]
        row = filled(count)
        for h in range(heads):
            column = h * size
            query = first * width + column
            _turn(qkv, query + hidden, width, count, size, keys)
            _product(qkv, query, width, keys, 0, row, size, weights, place, row, count, row)
            for i in range(place, place + count * row, row):
                for j in range(i + count, i + row):
                    weights[j] = _FAR
                most = _load(weights, i)
                for j in range(i + 8, i + row, 8):
                    most = _larger(most, _load(weights, j))
                shift = _all(-scale * _top(most))
                for j in range(i, i + row, 8):
                    _store(weights, j, _fma(_load(weights, j), _all(scale), shift))
            # In a loop of its own: within a row there is too little to do while an exponential is under way.
            for j in range(place, place + count * row, 8):
                _store(weights, j, _exp(_load(weights, j)))
            for i in range(place, place + count * row, row):
                total = _load(weights, i)
                for j in range(i + 8, i + row, 8):
                    total = _add(total, _load(weights, j))
                inverse = _all(_ONE / _sum(total))
                for j in range(i, i + row, 8):
                    _store(weights, j, _mul(_load(weights, j), inverse))
            value = query + 2 * hidden
            _product(weights, place, row, qkv, value, width, count, out, first * hidden + column, hidden, count, size)
            place += count * row


@_kernel(_GRID, _GRID, _PLACES, types.int64, _ROW, _GRID, _ROW, types.boolean)
def attend_backward(grad, qkv, starts, heads, weights, dqkv, bias_grad, fresh):
    """The gradient of `attend`: `dqkv`, and its column sums for the bias, where there is one."""
    hidden = grad.shape[1]
    width, size = 3 * hidden, hidden // heads
    scale = np.float32(1 / np.sqrt(size))
    room = _longest(starts)
    values, scores = np.empty(size * room, np.float32), np.empty(room * room, np.float32)
    place = 0
    for s in range(len(starts) - 1):
        first, count = starts[s], starts[s + 1] - starts[s]
        row = filled(count)
        for h in range(heads):
            column = h * size
            query, given = first * width + column, first * hidden + column
            key, value = query + hidden, query + 2 * hidden
            _turn(qkv, value, width, count, size, values)
            _product(grad, given, hidden, values, 0, row, size, scores, 0, row, count, row)
            for i in range(0, count * row, row):
                total = _all(_ZERO)
                for j in range(i, i + row, 8):
                    total = _fma(_load(scores, j), _load(weights, place + j), total)
                mean = _all(-_sum(total))
                for j in range(i, i + row, 8):
                    share = _mul(_load(weights, place + j), _all(scale))
                    _store(scores, j, _mul(_add(_load(scores, j), mean), share))
            _product(scores, 0, row, qkv, key, width, count, dqkv, query, width, count, size)
            _turned_product(scores, 0, row, qkv, query, width, count, dqkv, key, width, count, size)
            _turned_product(weights, place, row, grad, given, hidden, count, dqkv, value, width, count, size)
            place += count * row
    if len(bias_grad):
        if fresh:
            bias_grad[:] = 0
        for t in range(starts[-1]):
            line = dqkv[t]
            for c in range(width):
                bias_grad[c] += line[c]
