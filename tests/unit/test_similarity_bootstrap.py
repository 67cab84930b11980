"""The bootstrap over sentences: exact for its weights, and as wide as a plain one that computes everything again."""

import math

import numpy as np
import pytest

from crossalign.analysis import bootstrap
from crossalign.analysis import moments as second_moments
from crossalign.analysis.backends import NumpyBackend, TorchBackend
from crossalign.analysis.indexes import RESAMPLED
from crossalign.analysis.matrices import Lengths, Matrix, functions_of, strangers
from crossalign.analysis.moments import accumulate
from crossalign.analysis.similarity import Options, compare, similarity

ASKED = Options(RESAMPLED, resample=True)


def in_blocks(backend):
    """The same backend reading a few rows at a time."""
    backend.block, backend.tile = 23, 60
    return backend


BACKENDS = {
    "numpy": NumpyBackend,
    "numpy, blocks": lambda: in_blocks(NumpyBackend()),
    "torch": lambda: TorchBackend("cpu"),
    "torch, blocks": lambda: in_blocks(TorchBackend("cpu")),
}


def pair(seed: int, count: int, neurons: int = 6, noise: float = 1.0):
    """Two languages with shared meaning and lengths that tell on the vectors; rows are independent draws."""
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(4, 40, count)]
    lengths.append(np.maximum(1, lengths[0] + rng.integers(-2, 3, count)))
    slope = np.linspace(-1, 1, neurons)
    meaning = rng.standard_normal((count, neurons)) * np.linspace(2, 0.5, neurons)
    vectors = [
        meaning + noise * rng.standard_normal((count, neurons)) + 0.8 * np.outer(np.log(own), slope) for own in lengths
    ]
    return vectors, lengths


def rows_out(matrix: np.ndarray, functions: np.ndarray) -> np.ndarray:
    return matrix - functions @ (functions.T @ matrix)


def weighted_cka(x: np.ndarray, y: np.ndarray, times: np.ndarray, dealt: int = 50) -> float:
    """CKA of rows that come so many times each, as they are; parts drawn more than once do not meet their copies."""
    same = np.arange(len(x)) % dealt
    same = same[:, None] == same[None, :]
    pairs = np.where(same, times[:, None], np.outer(times, times))
    xy, xx, yy = (((a @ a.T) * (b @ b.T) * pairs).sum() for a, b in ((x, y), (x, x), (y, y)))
    return xy / np.sqrt(xx * yy)


def weighted_anc(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> float:
    x, y = (np.repeat(matrix, times, axis=0) for matrix in (x, y))
    return np.abs((x * y).sum(0) / np.sqrt((x * x).sum(0) * (y * y).sum(0))).mean()


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("cheaper", [True, False], ids=["by sentences", "by neurons"])
@pytest.mark.parametrize("room", [1 << 28, 8 * 7 * 6 * 2], ids=["at once", "two columns at a time"])
def test_overlaps_of_parts(backend, cheaper, room, monkeypatch):
    """By their definition, where the sentences do not fill the last round."""
    monkeypatch.setattr(second_moments, "by_sentences", lambda *_: cheaper)
    monkeypatch.setattr(second_moments, "ROOM", room)
    (x, y), _ = pair(1, 131)
    x, y = x - x.mean(0), y - y.mean(0)
    moments, products = accumulate(*_matrices(backend(), x, y), full=True, parts=7, shares=7)
    for first, second, found in ((x, x, moments[0]), (y, y, moments[1]), (x, y, products[0])):
        matrices = [first[part::7].T @ second[part::7] for part in range(7)]
        want = [[np.sum(a * b) for a in matrices] for b in matrices]
        assert np.asarray(found.overlaps) == pytest.approx(np.array(want), rel=1e-10)
        assert np.asarray(found.shares) == pytest.approx(np.array([np.diagonal(one) for one in matrices]), rel=1e-10)
    assert np.asarray(products[0].cross) == pytest.approx(x.T @ y, rel=1e-10)
    assert np.asarray(moments[1].gram) == pytest.approx(y.T @ y, rel=1e-10)


def _matrices(backend, x, y):
    first, *rest = (Matrix(matrix, backend, "X") for matrix in (x, y))
    return first, rest


def test_the_cheaper_way():
    """The demo and mBERT on PUD go by sentences, ten thousand sentences of a base model by neurons."""
    assert second_moments.by_sentences(100, 64, 64, 50) and second_moments.by_sentences(1000, 768, 768, 50)
    assert not second_moments.by_sentences(10_000, 768, 768, 50) and not second_moments.by_sentences(3000, 64, 64, 50)


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("cheaper", [True, False], ids=["by sentences", "by neurons"])
def test_draws_are_the_indexes_of_the_resampled_rows(backend, cheaper, monkeypatch):
    monkeypatch.setattr(second_moments, "by_sentences", lambda *_: cheaper)
    count = 183
    (x, y), lengths = pair(2, count)
    found = compare(x, [y], ASKED, backend(), lengths=[Lengths(own) for own in lengths])[0]
    weights = bootstrap.resamples(count).weights
    assert weights.shape == (200, 50) and (weights.sum(1) == 50).all()
    other = strangers(lengths[1])
    left, right = x - x.mean(0), y - y.mean(0)
    bare = [rows_out(matrix, functions_of(own)) for matrix, own in zip((x, y), lengths, strict=True)]
    hits = [(x[i] @ y.T / np.linalg.norm(y, axis=1)).argmax() == i for i in range(count)]
    for place in (0, 7, 199):
        times = np.resize(weights[place], count).astype(int)
        for name, index in (("cka", weighted_cka), ("anc", weighted_anc)):
            plain = index(left, right, times)
            assert found.draws["none", name][place] == pytest.approx(plain, abs=1e-10)
            stranger = index(left, right[other], times)
            assert found.draws["strangers", name][place] == pytest.approx(plain - stranger, abs=1e-10)
            assert found.draws["length", name][place] == pytest.approx(index(*bare, times), abs=1e-10)
        assert found.draws["none", "matching"][place] == pytest.approx(np.repeat(hits, times).mean(), abs=1e-12)


def test_all_sentences_once_give_the_value():
    """The value is the resample in which every part comes once."""
    (x, y), _ = pair(3, 90)
    moments, products = accumulate(*_matrices(NumpyBackend(), x, y), full=True, parts=50)
    sums = [one.overlaps.sum() for one in (products[0], *moments)]
    assert bootstrap.cka(*sums) == pytest.approx(similarity("cka", x, y), abs=1e-12)


def plain_cka(x: np.ndarray, y: np.ndarray) -> float:
    return np.linalg.norm(x.T @ y) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y)


def plain_anc(x: np.ndarray, y: np.ndarray) -> float:
    return weighted_anc(x, y, np.ones(len(x), dtype=int))


def plain_errors(x, y, lengths, rng, rounds: int = 200) -> dict[tuple[str, str], float]:
    """Standard errors the long way: sentences are drawn, means and functions of the length are fitted again."""
    other = strangers(lengths[1])
    hits = (x @ (y / np.linalg.norm(y, axis=1)[:, None]).T).argmax(1) == np.arange(len(x))
    values: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        drawn = rng.integers(0, len(x), len(x))
        bare = [rows_out(m[drawn], functions_of(own[drawn])) for m, own in zip((x, y), lengths, strict=True)]
        left, right, stranger = (m[drawn] - m[drawn].mean(0) for m in (x, y, y[other]))
        for name, index in (("cka", plain_cka), ("anc", plain_anc)):
            plain = index(left, right)
            values.setdefault(("none", name), []).append(plain)
            values.setdefault(("strangers", name), []).append(plain - index(left, stranger))
            values.setdefault(("length", name), []).append(index(*bare))
        values.setdefault(("none", "anc-signed"), []).append(similarity("anc-signed", x[drawn], y[drawn]))
        values.setdefault(("none", "matching"), []).append(hits[drawn].mean())
    return {key: float(np.std(drawn, ddof=1)) for key, drawn in values.items()}


def test_standard_errors_equal_those_of_a_plain_bootstrap():
    """Each is uncertain by an eighth: 50 parts, 200 rounds on both sides. The mean over 8 pairs must be near one."""
    rng = np.random.default_rng(4)
    ratios: dict[tuple[str, str], list[float]] = {}
    for seed in range(8):
        (x, y), lengths = pair(10 + seed, 300, noise=2.0)
        found = compare(x, [y], ASKED, lengths=[Lengths(own) for own in lengths])[0]
        for key, error in plain_errors(x, y, lengths, rng).items():
            ratios.setdefault(key, []).append(found.draws[key].std(ddof=1) / error)
    assert len(ratios) == 8
    for key, found in ratios.items():
        assert np.mean(found) == pytest.approx(1.0, abs=0.12), key
        assert min(found) > 0.6 and max(found) < 1.6, key


@pytest.mark.parametrize(("neurons", "noise"), [(6, 2.0), (64, 1.0)])
def test_standard_errors_are_those_of_other_sentences(neurons, noise):
    """Many samples of the same languages: the index strays as much as one sample's bootstrap says.

    With 64 neurons a resample whose copies meet each other would say half as much again.
    """
    values: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    for seed in range(100):
        (x, y), _ = pair(1000 + seed, 250, neurons, noise)
        found = compare(x, [y], ASKED)[0]
        for name in ("cka", "anc", "anc-signed"):
            values.setdefault(name, []).append(found.values[name])
            errors.setdefault(name, []).append(found.draws["none", name].std(ddof=1))
    for name, found in values.items():
        # A hundred samples tell their spread to seven parts in a hundred.
        assert np.mean(errors[name]) == pytest.approx(np.std(found, ddof=1), rel=0.25), name


def test_the_lead_of_a_layer_has_its_own_standard_error():
    """Two layers of the same sentences stray together, so their distance strays less than either alone."""
    rng = np.random.default_rng(5)
    ratios = []
    for seed in range(8):
        (x, y), _ = pair(50 + seed, 300, noise=2.0)
        layers = [(x, y), tuple(m + 0.5 * rng.standard_normal(m.shape) for m in (x, y))]
        drawn = [compare(a, [b], ASKED)[0] for a, b in layers]
        values = [one.values["cka"] for one in drawn]
        top = int(np.argmax(values))
        errors = bootstrap.standard_errors(values, [one.draws["none", "cka"] for one in drawn])
        assert errors[top][1] == 0.0
        places = (rng.integers(0, 300, 300) for _ in range(250))
        leads = [
            similarity("cka", *(m[p] for m in layers[1 - top])) - similarity("cka", *(m[p] for m in layers[top]))
            for p in places
        ]
        ratios.append(errors[1 - top][1] / np.std(leads, ddof=1))
        assert errors[1 - top][1] < 0.8 * errors[1 - top][0]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.12)


def test_the_same_number_of_parts_is_resampled_alike():
    weights = [bootstrap.resamples(count).weights for count in (50, 1000, 10_000)]
    assert all(np.array_equal(weights[0], other) for other in weights[1:])
    # Ten parts of one sentence each; of nine sentences nothing can be said.
    assert bootstrap.resamples(10).weights.shape == (200, 10)
    assert bootstrap.resamples(9) is None
    (x, y), _ = pair(6, 9)
    assert compare(x, [y], ASKED)[0].draws == {}


def test_hand_computed_means():
    """Twelve sentences in twelve parts: the mean of a resample is that of the sentences drawn."""
    found = bootstrap.Resamples(12, 12)
    counts = np.arange(12.0)
    assert found.means(counts) == pytest.approx(found.weights @ counts / 12)
    # Thirteen sentences: part 0 has two of them.
    found = bootstrap.Resamples(13, 12)
    drawn = found.weights[0]
    want = (drawn[0] * (1 + 1) + drawn[1] * 1) / (drawn.sum() + drawn[0])
    assert found.means(np.array([1.0, 1, *[0] * 10, 1]))[0] == pytest.approx(want)


def test_hand_computed_standard_errors():
    draws = [np.array([0.1, 0.3]), None, np.array([0.5, 0.5]), np.array([0.4, 0.6])]
    found = bootstrap.standard_errors([0.2, 0.9, 0.5, math.nan], draws)
    assert found[1] is None and found[3] is None
    assert found[0] == pytest.approx((0.02**0.5, 0.02**0.5)) and found[2] == (0.0, 0.0)
    assert bootstrap.standard_errors([0.2, math.nan], [None, None]) == [None, None]


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_constant_neurons_count_as_zero_in_resamples(backend):
    (x, y), _ = pair(7, 120)
    wide = [np.insert(matrix, 2, 0.1, axis=1) for matrix in (x, y)]
    found, plain = (
        compare(a, [b], Options(("anc",), resample=True), backend())[0].draws["none", "anc"] for a, b in (wide, (x, y))
    )
    assert found == pytest.approx(plain * 6 / 7, abs=1e-9)
    # One sentence alone moves this neuron: constant in resamples without it.
    rare = [matrix.copy() for matrix in (x, y)]
    for matrix in rare:
        matrix[:, 3] = 0.0
        matrix[11, 3] = 5.0
    assert np.isfinite(compare(rare[0], [rare[1]], ASKED, backend())[0].draws["none", "anc"]).all()


def test_what_has_no_value_has_no_draws():
    (x, y), _ = pair(8, 60)
    flat = np.ones_like(y)
    good, bad = compare(x, [y, flat], ASKED)
    assert ("none", "cka") in good.draws and similarity("matching", x, y) > 0
    assert ("none", "cka") not in bad.draws and ("none", "anc") not in bad.draws
