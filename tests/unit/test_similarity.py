"""Every similarity index against an independent computation in float64, and on odd input."""

import math

import numpy as np
import pytest
import scipy.linalg

from crossalign.analysis.similarity import INDEXES, Options, compare, similarity
from crossalign.runtime.errors import UserError

CLOSE = 1e-8
# The variants of another library add 1e-10 to every variance, so that its own properties are not exact ones; they have
# tests of their own.
PLAIN = tuple(name for name in INDEXES if not name.endswith("-ecco"))


def related(
    seed: int, sentences: int = 120, neurons: int = 7, others: int = 1, spread: float = 2.0
) -> list[np.ndarray]:
    """Float32 matrices with an uneven common part, neurons of uneven size, and means that are not zero."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((sentences, neurons)) * np.linspace(2.0, 0.1, neurons)
    found = []
    for _ in range(others + 1):
        mixed = (shared + rng.standard_normal((sentences, neurons))) @ rng.standard_normal((neurons, neurons))
        found.append((mixed * np.exp(rng.normal(0, spread, neurons)) + rng.normal(0, 3, neurons)).astype(np.float32))
    return found


def double(*matrices: np.ndarray) -> list[np.ndarray]:
    return [matrix.astype(np.float64) for matrix in matrices]


def centre(matrix: np.ndarray) -> np.ndarray:
    return matrix - matrix.mean(axis=0)


def gram_cka(left: np.ndarray, right: np.ndarray) -> float:
    """CKA of two n x n kernels, centred by the matrix 1 - 1/n."""
    count = len(left)
    hat = np.eye(count) - np.ones((count, count)) / count
    left, right = hat @ left @ hat, hat @ right @ hat
    return np.trace(left @ right) / np.sqrt(np.trace(left @ left) * np.trace(right @ right))


def rbf(x: np.ndarray) -> np.ndarray:
    distances = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-distances / (2 * np.median(distances[distances != 0])))


def qr_correlations(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Canonical correlations and the canonical variates of x."""
    left, right = np.linalg.qr(centre(x))[0], np.linalg.qr(centre(y))[0]
    directions, rho, _ = scipy.linalg.svd(left.T @ right)
    return rho, left @ directions


def matched(x: np.ndarray, y: np.ndarray) -> float:
    """The share of rows that find their partner."""
    cosines = (x / np.linalg.norm(x, axis=1)[:, None]) @ (y / np.linalg.norm(y, axis=1)[:, None]).T
    return (cosines.argmax(axis=1) == np.arange(len(x))).mean()


def expected(x: np.ndarray, y: np.ndarray, directions: int = 20) -> dict[str, float]:
    """All indexes by their definitions; of matrices of different widths those that have one."""
    rho, variates = qr_correlations(x, y)
    weights = np.abs(variates[:, : len(rho)].T @ centre(x)).sum(axis=1)
    values = {
        "cka": gram_cka(x @ x.T, y @ y.T),
        "cka-uncentred": np.linalg.norm(x.T @ y) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y),
        "cka-rbf": gram_cka(rbf(x), rbf(y)),
        "cca": rho.mean(),
        "cca-squared": (rho**2).mean(),
        "pwcca": (weights / weights.sum()) @ rho,
    }
    if x.shape != y.shape:
        return values
    corr = np.array([np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(x.shape[1])])
    leading = [scipy.linalg.svd(centre(m), full_matrices=False)[0][:, :directions] for m in (x, y)]
    shares = sum(m.var(axis=0) / m.var(axis=0).sum() / 2 for m in (x, y))
    return values | {
        "cka-standardised": gram_cka(*(m @ m.T for m in (x / x.std(axis=0), y / y.std(axis=0)))),
        "anc": np.abs(corr).mean(),
        "anc-signed": corr.mean(),
        "svcca": scipy.linalg.svdvals(leading[0].T @ leading[1]).mean(),
        "matching": matched(x, y),
        "matching-standardised": matched(*(centre(m) / m.std(axis=0) for m in (x, y))),
        **{f"variance-{k}": np.sort(shares)[::-1][:k].sum() for k in (1, 5, 20)},
    }


def test_equals_definitions():
    x, *others = related(0, others=3)
    found = compare(x, others, Options(svcca_directions=4))
    for other, pair in zip(others, found, strict=True):
        plain = {name: pair.values[name] for name in PLAIN}
        assert plain == pytest.approx(expected(*double(x, other), directions=4), abs=CLOSE)
        assert list(pair.values) == list(INDEXES)


@pytest.mark.parametrize("widths", [(7, 4), (4, 7)])
def test_different_numbers_of_neurons(widths):
    x, y = (matrix[:, :width] for matrix, width in zip(related(2), widths, strict=True))
    want = expected(*double(x, y)) | expected_of_ecco(*double(x, y))
    assert compare(x, [y], Options(tuple(want)))[0].values == pytest.approx(want, abs=CLOSE)


def conditioned(rng, sentences: int, neurons: int, spread: float) -> np.ndarray:
    """A matrix whose singular values fall from 1 to 1 / spread, in directions that scaling the neurons cannot mend."""
    left = np.linalg.qr(centre(rng.standard_normal((sentences, neurons))))[0]
    right = np.linalg.qr(rng.standard_normal((neurons, neurons)))[0]
    return left * np.geomspace(1, 1 / spread, neurons) @ right


@pytest.mark.parametrize("spread", [1e1, 1e5])
def test_ill_conditioned_neurons(spread):
    rng = np.random.default_rng(7)
    x = conditioned(rng, 400, 30, spread)
    y = x @ rng.standard_normal((30, 30)) / 30 + 0.3 * conditioned(rng, 400, 30, spread)
    found = compare(x, [y, x], Options(("cca", "pwcca", "svcca"), svcca_directions=10))
    want = expected(x, y, directions=10)
    for name, value in found[0].values.items():
        assert value == pytest.approx(want[name], abs=CLOSE), name
    assert found[1].values == pytest.approx(dict.fromkeys(("cca", "pwcca", "svcca"), 1.0), abs=CLOSE)


def test_orthogonal_spaces_have_no_correlation():
    """Zeros among the correlations come out as zeros, not as the square root of the rounding error."""
    q = np.linalg.qr(centre(np.random.default_rng(3).standard_normal((200, 21))))[0]
    x, y = q[:, :11], np.hstack([q[:, :1], q[:, 11:]])
    assert similarity("cca", x, y) == pytest.approx(1 / 11, abs=1e-13)
    assert similarity("cca", x, q[:, 11:]) == pytest.approx(0.0, abs=1e-13)


def test_matching_is_exact_where_float32_is_not():
    """Vectors so close together that float32 cosines cannot tell them apart."""
    rng = np.random.default_rng(0)
    x = 1.0 + 1e-4 * rng.standard_normal((100, 20))
    y = x + 3e-4 * rng.standard_normal((100, 20))
    want = expected(x, y)["matching"]
    assert 0.05 < want < 0.95
    assert similarity("matching", x, y) == want


ECCO = Options(("cca-ecco", "pwcca-ecco"))


def inverse_root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(np.linalg.pinv(matrix))
    return vectors @ np.diag(np.sqrt(values)) @ vectors.T


def ecco_directions(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left directions and correlations; x and y are neurons x tokens."""
    both = np.cov(x, y)
    own, mixed, other = both[: len(x), : len(x)], both[: len(x), len(x) :], both[len(x) :, len(x) :]
    sizes = np.abs(own).max(), np.abs(other).max()
    own, other, mixed = own / sizes[0], other / sizes[1], mixed / np.sqrt(sizes[0] * sizes[1])
    own, other = own + 1e-10 * np.eye(len(own)), other + 1e-10 * np.eye(len(other))
    directions, rho, _ = np.linalg.svd(inverse_root(own) @ mixed @ inverse_root(other))
    return directions * np.sign(directions[np.abs(directions).argmax(0), np.arange(len(directions))]), rho


def leading_mean(rho: np.ndarray) -> float:
    for count in range(1, len(rho)):
        if rho[:count].sum() / rho.sum() >= 0.98:
            return rho[:count].mean()
    return rho.mean()


def weighted_mean(x: np.ndarray, directions: np.ndarray, rho: np.ndarray) -> float:
    directions, means = directions[:, : len(rho)], x.mean(axis=1, keepdims=True)
    tokens, _ = np.linalg.qr((directions.T @ (x - means) + means[: len(rho)]).T)
    weights = np.abs(tokens.T @ x.T).sum(axis=1)
    return (weights / weights.sum()) @ rho


def expected_of_ecco(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Both indexes of sentences x neurons."""
    x, y = (matrix[:, matrix.var(0) / np.abs(np.cov(matrix.T)).max() >= 1e-10] for matrix in (x, y))
    directions, rho = ecco_directions(x.T, y.T)
    return {"cca-ecco": leading_mean(rho), "pwcca-ecco": weighted_mean(x.T, directions, rho)}


@pytest.mark.parametrize("seed", range(2))
def test_equals_the_steps_of_the_library(seed):
    x, y = double(*related(seed, 300, 12, spread=1.0))
    found = compare(x, [y, x], ECCO)
    assert found[0].values == pytest.approx(expected_of_ecco(x, y), abs=1e-8)
    assert found[1].values == pytest.approx(dict.fromkeys(ECCO.indexes, 1.0), abs=1e-4)
    # Neither is what the papers' definitions give.
    assert found[0].values["cca-ecco"] > similarity("cca", x, y) + 0.01
    assert abs(found[0].values["pwcca-ecco"] - similarity("pwcca", x, y)) > 0.01


LINEAR = ("cka", "cka-uncentred", "cka-rbf", "cca", "cca-squared", "svcca", "pwcca")


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("constant", [0.1, 3e7])
def test_constant_neuron(constant):
    x, y = normal(0, 60, 5), normal(1, 60, 5)
    with_constant = np.insert(x, 2, np.float32(constant), axis=1)
    wider = np.insert(y, 2, normal(2, 60), axis=1)
    found = compare(with_constant, [wider], Options())[0]
    plain = compare(x, [y], Options())[0]
    assert math.isnan(found.neurons[2])
    assert np.delete(found.neurons, 2) == pytest.approx(plain.neurons, abs=1e-8)
    # Of six neurons one counts as zero.
    assert found.values["anc"] == pytest.approx(plain.values["anc"] * 5 / 6, abs=1e-8)
    both = compare(with_constant, [np.insert(y, 2, np.float32(1.0), axis=1)], Options(LINEAR))[0].values
    for name in LINEAR:
        if name != "cka-uncentred":
            assert both[name] == pytest.approx(plain.values[name], abs=1e-8), name


@pytest.mark.parametrize("kind", ["zero", "constant"])
def test_matrix_without_variation(kind):
    flat = np.full((30, 4), 0.0 if kind == "zero" else 0.7, dtype=np.float32)
    other = normal(3, 30, 4)
    for pair in ((flat, other), (other, flat), (flat, flat)):
        values = compare(pair[0], [pair[1]], Options())[0].values
        known = {"matching", "matching-standardised"} | ({"cka-uncentred"} if kind == "constant" else set())
        assert {name for name, value in values.items() if math.isnan(value)} == set(INDEXES) - known
        if kind == "zero":
            assert values["matching"] == 0.0
        assert values["matching-standardised"] == 0.0
    # One bad pair does not spoil the others of the job.
    good, bad = compare(other, [normal(4, 30, 4), flat], Options())
    assert not any(math.isnan(value) for value in good.values.values())
    assert math.isnan(bad.values["cca"])
    assert good.values == pytest.approx(compare(other, [normal(4, 30, 4)], Options())[0].values, abs=1e-12)


def test_fewer_sentences_than_neurons():
    x, y = normal(5, 12, 40), normal(6, 12, 40)
    found = compare(x, [y], Options(svcca_directions=4))[0]
    assert found.saturated
    for name in ("cca", "cca-squared", "pwcca"):
        assert found.values[name] == pytest.approx(1.0, abs=1e-8)
    want = expected(*double(x, y), directions=4)
    for name in ("cka", "svcca"):
        assert found.values[name] == pytest.approx(want[name], abs=1e-8) and found.values[name] < 0.999
    assert not compare(normal(5, 50, 4), [normal(6, 50, 4)], Options())[0].saturated


def test_zero_sentence_is_never_found():
    x = normal(15, 10, 4)
    y = x.copy()
    y[3] = 0.0
    assert compare(x, [y], Options(("matching",)))[0].values["matching"] == 0.9
    assert compare(y, [x], Options(("matching",)))[0].values["matching"] == 0.9
    assert compare(-np.abs(y), [np.abs(y)], Options(("matching",)))[0].values["matching"] < 0.9


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_sizes_far_from_one(scale):
    x, y = normal(16, 50, 5), normal(17, 50, 5)
    scaled = (y * np.float32(scale)).astype(np.float32)
    plain = compare(x, [y], Options())[0].values
    assert compare(x, [scaled], Options())[0].values == pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_numbers_that_are_not_finite(bad):
    x, y = normal(18, 30, 4), normal(19, 30, 4)
    y[6, 2] = bad
    with pytest.raises(UserError, match=rf"^layer 3 of fr: sentence 7, neuron 2 is {bad}; every number must be finite"):
        compare(x, [y], Options(), names=["layer 3 of en", "layer 3 of fr"])


def test_shapes_that_do_not_fit():
    x = normal(20, 30, 4)
    with pytest.raises(UserError, match="Y: 29 sentences, but X has 30; row n of both must be the same sentence"):
        similarity("cka", x, x[:29])
    with pytest.raises(UserError, match="Y: 3 neurons, but X has 4; anc needs the same number"):
        similarity("anc", x, x[:, :3])
    with pytest.raises(UserError, match="Y: 3 neurons, but X has 4; matching needs the same number"):
        similarity("matching", x, x[:, :3])
    with pytest.raises(UserError, match="X: at least two sentences and one neuron are needed, the array is 1 x 4"):
        similarity("cka", x[:1], x[:1])
    with pytest.raises(UserError, match="X: at least two sentences and one neuron are needed, the array is 30 x 0"):
        similarity("cka", x[:, :0], x)
    with pytest.raises(UserError, match="X: an array of sentences x neurons is needed, this one has 1 dimensions"):
        similarity("cka", x[0], x[0])
    with pytest.raises(UserError, match="X: floating-point numbers are needed, not int64"):
        similarity("cka", np.ones((3, 3), dtype=np.int64), x)


def test_options_that_make_no_sense():
    with pytest.raises(UserError, match="index 'kca' is not one of cka, cka-uncentred"):
        Options(("kca",))
    with pytest.raises(UserError, match="SVCCA with 0 directions: at least 1 is needed"):
        Options(svcca_directions=0)
