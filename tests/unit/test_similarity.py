"""Every similarity index against an independent computation in float64, on both backends."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cross_decomposition import CCA as SklearnCCA

from crossalign.analysis import canonical, pairwise, similarity
from crossalign.analysis.backends import NumpyBackend, TorchBackend
from crossalign.analysis.indexes import VARIANCE
from crossalign.analysis.similarity import INDEXES, Options, compare

CLOSE = 1e-8
# The variants of another library add 1e-10 to every variance, so that its own properties are not exact ones; they have
# tests of their own.
PLAIN = tuple(name for name in INDEXES if not name.endswith("-ecco"))


def related(seed: int, sentences: int = 120, neurons: int = 7, others: int = 1) -> list[np.ndarray]:
    """Float32 matrices with a common part, neurons of uneven size, and means that are not zero."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((sentences, neurons))
    found = []
    for _ in range(others + 1):
        mixed = (shared + rng.standard_normal((sentences, neurons))) @ rng.standard_normal((neurons, neurons))
        found.append((mixed * np.exp(rng.normal(0, 2, neurons)) + rng.normal(0, 3, neurons)).astype(np.float32))
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


def expected(x: np.ndarray, y: np.ndarray, directions: int = 20) -> dict[str, float]:
    """All indexes by their definitions."""
    corr = np.array([np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(x.shape[1])])
    rho, variates = qr_correlations(x, y)
    weights = np.abs(variates.T @ centre(x)).sum(axis=1)
    leading = [scipy.linalg.svd(centre(m), full_matrices=False)[0][:, :directions] for m in (x, y)]
    shares = sum(m.var(axis=0) / m.var(axis=0).sum() / 2 for m in (x, y))
    cosines = (x / np.linalg.norm(x, axis=1)[:, None]) @ (y / np.linalg.norm(y, axis=1)[:, None]).T
    return {
        "cka": gram_cka(x @ x.T, y @ y.T),
        "cka-uncentred": np.linalg.norm(x.T @ y) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y),
        "cka-rbf": gram_cka(rbf(x), rbf(y)),
        "cka-standardised": gram_cka(*(m @ m.T for m in (x / x.std(axis=0), y / y.std(axis=0)))),
        "anc": np.abs(corr).mean(),
        "anc-signed": corr.mean(),
        "cca": rho.mean(),
        "cca-squared": (rho**2).mean(),
        "svcca": scipy.linalg.svdvals(leading[0].T @ leading[1]).mean(),
        "pwcca": (weights / weights.sum()) @ rho,
        "matching": (cosines.argmax(axis=1) == np.arange(len(x))).mean(),
        **{f"variance-{k}": np.sort(shares)[::-1][:k].sum() for k in (1, 5, 20)},
    }


def small_blocks(backend):
    """The same backend reading a few rows at a time, as it does with data larger than its memory."""
    backend.block, backend.tile = 11, 50
    return backend


def with_scipy(backend):
    """The same backend decomposing small matrices as it does large ones."""
    backend.small = 0
    return backend


BACKENDS = {
    "numpy": NumpyBackend,
    "numpy, scipy": lambda: with_scipy(NumpyBackend()),
    "numpy, blocks": lambda: small_blocks(NumpyBackend()),
    "torch": lambda: TorchBackend("cpu"),
    "torch, blocks": lambda: small_blocks(TorchBackend("cpu")),
}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("seed", range(3))
def test_equals_definitions(backend, seed):
    x, *others = related(seed, others=3)
    found = compare(x, others, Options(svcca_directions=4), backend())
    for other, pair in zip(others, found, strict=True):
        plain = {name: pair.values[name] for name in PLAIN}
        assert plain == pytest.approx(expected(*double(x, other), directions=4), abs=CLOSE)
        assert list(pair.values) == list(INDEXES)


def test_hand_computed():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    y = np.array([[1.0, 1.0], [0.0, 1.0], [-1.0, -1.0], [0.0, -1.0]])
    # X^T Y = [[2, 2], [0, 2]], X^T X = 2 * identity, Y^T Y = [[2, 2], [2, 4]]
    assert similarity.similarity("cka", x, y) == pytest.approx(12 / (np.sqrt(8) * np.sqrt(28)))
    assert similarity.similarity("cka-uncentred", x, y) == pytest.approx(12 / (np.sqrt(8) * np.sqrt(28)))
    assert compare(x, [y], Options(("anc",)))[0].neurons == pytest.approx([1.0, 1 / np.sqrt(2)])
    assert similarity.similarity("anc", x, -y) == pytest.approx((1 + 1 / np.sqrt(2)) / 2)
    assert similarity.similarity("anc-signed", x, -y) == pytest.approx(-(1 + 1 / np.sqrt(2)) / 2)
    # Y = X [[1, 1], [0, 1]]: the same span.
    assert similarity.similarity("cca", x, y) == pytest.approx(1.0)
    # Row 2 of X is closest to rows 1 and 2 of Y with cosines 0.71 and 1, row 1 to rows 1 (0.71) and others (0).
    assert similarity.similarity("matching", x, y) == 1.0


def test_anc_alone():
    x, y = related(1)
    whole = compare(x, [y])[0]
    alone = compare(x, [y], Options(("anc", "anc-signed")), small_blocks(NumpyBackend()))[0]
    assert alone.neurons == pytest.approx(whole.neurons, abs=1e-13)
    assert alone.values == pytest.approx({name: whole.values[name] for name in ("anc", "anc-signed")}, abs=1e-13)


def test_different_numbers_of_neurons():
    x, y = related(2)
    y = y[:, :4]
    asked = ("cka", "cka-uncentred", "cka-rbf", "cca", "cca-squared", "pwcca")
    rho, variates = qr_correlations(*double(x, y))
    found = compare(x, [y], Options(asked))[0].values
    assert found["cca"] == pytest.approx(rho.mean(), abs=CLOSE)
    assert found["cka"] == pytest.approx(gram_cka(*(m @ m.T for m in double(x, y))), abs=CLOSE)
    weights = np.abs(variates[:, :4].T @ centre(double(x)[0])).sum(axis=1)
    assert found["pwcca"] == pytest.approx((weights / weights.sum()) @ rho, abs=CLOSE)
    assert compare(y, [x], Options(("cca",)))[0].values["cca"] == pytest.approx(rho.mean(), abs=CLOSE)


def test_scikit_learn_agrees():
    # Its iteration stops at a tolerance of its own, so few neurons and a strong relation.
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 3))
    y = x @ rng.standard_normal((3, 3)) + 0.5 * rng.standard_normal((300, 3))
    left, right = SklearnCCA(n_components=3, max_iter=100_000, tol=1e-20).fit_transform(x, y)
    rho = [np.corrcoef(left[:, k], right[:, k])[0, 1] for k in range(3)]
    assert similarity.similarity("cca", x, y) == pytest.approx(np.mean(rho), abs=CLOSE)
    assert similarity.similarity("cca-squared", x, y) == pytest.approx(np.mean(np.square(rho)), abs=CLOSE)


@pytest.mark.parametrize("variance", [0.5, 0.9, 0.99, 1.0])
def test_svcca_by_variance(variance):
    x, y = related(4)
    spaces = []
    for matrix in double(x, y):
        left, sigma, _ = scipy.linalg.svd(centre(matrix), full_matrices=False)
        shares = np.cumsum(sigma**2) / np.sum(sigma**2)
        spaces.append(left[:, : np.searchsorted(shares, variance - 1e-12) + 1])
    rho = scipy.linalg.svdvals(spaces[0].T @ spaces[1])
    assert similarity.similarity("svcca", x, y, svcca_variance=variance) == pytest.approx(rho.mean(), abs=CLOSE)


def conditioned(rng, sentences: int, neurons: int, spread: float) -> np.ndarray:
    """A matrix whose singular values fall from 1 to 1 / spread, in directions that scaling the neurons cannot mend."""
    left = np.linalg.qr(centre(rng.standard_normal((sentences, neurons))))[0]
    right = np.linalg.qr(rng.standard_normal((neurons, neurons)))[0]
    return left * np.geomspace(1, 1 / spread, neurons) @ right


@pytest.mark.parametrize("spread", [1e1, 1e2, 3e2, 1e3, 1e4, 1e5])
@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_ill_conditioned_neurons(spread, backend):
    rng = np.random.default_rng(7)
    x = conditioned(rng, 400, 30, spread)
    y = x @ rng.standard_normal((30, 30)) / 30 + 0.3 * conditioned(rng, 400, 30, spread)
    found = compare(x, [y, x], Options(("cca", "pwcca", "svcca"), svcca_directions=10), backend())
    want = expected(x, y, directions=10)
    for name, value in found[0].values.items():
        assert value == pytest.approx(want[name], abs=CLOSE), name
    assert found[1].values == pytest.approx(dict.fromkeys(("cca", "pwcca", "svcca"), 1.0), abs=CLOSE)


def test_second_orthogonalisation_matters(monkeypatch):
    """Without the second round the Gram matrices alone are worse here, so the limit is there for a reason."""
    rng = np.random.default_rng(7)
    x = conditioned(rng, 400, 30, 1e5)
    y = x @ rng.standard_normal((30, 30)) / 30 + 0.3 * conditioned(rng, 400, 30, 1e5)
    want = qr_correlations(x, y)[0].mean()
    refined = abs(similarity.similarity("cca", x, y) - want)
    monkeypatch.setattr(canonical, "GRAM_LIMIT", np.inf)
    plain = abs(similarity.similarity("cca", x, y) - want)
    assert refined < CLOSE
    assert plain > 10 * refined


def test_orthogonal_spaces_have_no_correlation():
    """Zeros among the correlations come out as zeros, not as the square root of the rounding error."""
    q = np.linalg.qr(centre(np.random.default_rng(3).standard_normal((200, 21))))[0]
    x, y = q[:, :11], np.hstack([q[:, :1], q[:, 11:]])
    assert similarity.similarity("cca", x, y) == pytest.approx(1 / 11, abs=1e-13)
    assert similarity.similarity("cca", x, q[:, 11:]) == pytest.approx(0.0, abs=1e-13)


def test_rbf_median_is_exact(monkeypatch):
    x, _ = related(5, sentences=301)
    x[10:14] = x[0]
    distances = ((double(x)[0][:, None] - double(x)[0][None]) ** 2).sum(axis=2)
    want = np.median(distances[distances != 0])
    for tile, sample in ((1000, 1000), (64, 64), (1000, 20), (20, 3), (50, 2)):
        monkeypatch.setattr(pairwise, "SAMPLE", sample)
        for backend in (NumpyBackend(), TorchBackend("cpu")):
            backend.tile = tile
            matrix = similarity.Matrix(x, backend, "x")
            assert pairwise.median_square(matrix) == pytest.approx(want, rel=1e-12)


def test_matching_is_exact_where_float32_is_not():
    """Vectors so close together that float32 cosines cannot tell them apart."""
    rng = np.random.default_rng(0)
    x = 1.0 + 1e-4 * rng.standard_normal((100, 20))
    y = x + 3e-4 * rng.standard_normal((100, 20))
    want = expected(x, y)["matching"]
    assert 0.05 < want < 0.95
    for backend in (small_blocks(NumpyBackend()), TorchBackend("cpu")):
        assert compare(x, [y], Options(("matching",)), backend)[0].values["matching"] == want


seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_self_similarity_is_one(seed):
    x, _ = related(seed)
    names = [name for name in PLAIN if name not in VARIANCE]
    assert compare(x, [x], Options(names))[0].values == pytest.approx(dict.fromkeys(names, 1.0), abs=CLOSE)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_values_are_shares_and_mostly_symmetric(seed):
    x, y = related(seed)
    forth, back = compare(x, [y])[0].values, compare(y, [x])[0].values
    for name, value in forth.items():
        assert (-1.0 if name == "anc-signed" else 0.0) - CLOSE <= value <= 1.0 + CLOSE
        if name not in ("pwcca", "pwcca-ecco", "matching"):
            assert value == pytest.approx(back[name], abs=CLOSE), name


@given(seed=seeds, scale=st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_cka_ignores_rotation_scale_and_offset(seed, scale):
    x, y = double(*related(seed))
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((7, 7)))[0]
    asked = Options(("cka", "cka-uncentred", "cka-rbf"))
    plain = compare(x, [y], asked)[0].values
    turned = compare(x, [scale * y @ rotation], asked)[0].values
    assert turned == pytest.approx(plain, abs=CLOSE)
    moved = compare(x, [y + 2.5], asked)[0].values
    assert (moved["cka"], moved["cka-rbf"]) == pytest.approx((plain["cka"], plain["cka-rbf"]), abs=CLOSE)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_cca_ignores_invertible_maps(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((120, 7))
    y = x + rng.standard_normal((120, 7))
    # Away from singular: a rotation, then uneven scales, then another rotation.
    first, second = (np.linalg.qr(rng.standard_normal((7, 7)))[0] for _ in range(2))
    mapped = y @ (first * rng.uniform(0.1, 10, 7)) @ second + rng.standard_normal(7)
    asked = Options(("cca", "cca-squared", "pwcca"))
    assert compare(x, [mapped], asked)[0].values == pytest.approx(compare(x, [y], asked)[0].values, abs=CLOSE)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_anc_ignores_affine_maps_of_neurons_only(seed):
    x, y = double(*related(seed))
    rng = np.random.default_rng(seed)
    mapped = y * rng.choice([-1, 1], 7) * rng.uniform(0.1, 10, 7) + rng.normal(0, 5, 7)
    assert similarity.similarity("anc", x, mapped) == pytest.approx(similarity.similarity("anc", x, y), abs=CLOSE)
    rotation = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    assert similarity.similarity("anc", x, x @ rotation) < 0.999
    assert similarity.similarity("cka", x, x @ rotation) == pytest.approx(1.0, abs=CLOSE)


def test_all_orders_of_sentences_are_equal():
    x, y = related(9)
    order = np.random.default_rng(0).permutation(len(x))
    found, plain = compare(x[order], [y[order]])[0].values, compare(x, [y])[0].values
    for name, value in found.items():
        # Neurons of very uneven size lose digits where 1e-10 is added.
        assert value == pytest.approx(plain[name], abs=1e-12 if name in PLAIN else 1e-9), name
