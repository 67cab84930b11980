"""CCA and PWCCA as the authors' library has them, against the same steps written out on neurons x tokens."""

import numpy as np
import pytest

from crossalign.analysis import similarity
from crossalign.analysis.backends import NumpyBackend, TorchBackend
from crossalign.analysis.similarity import Options, compare

ASKED = Options(("cca-ecco", "pwcca-ecco"))
BACKENDS = {"numpy": NumpyBackend, "torch": lambda: TorchBackend("cpu")}


def related(seed: int, sentences: int = 300, neurons: int = 12, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Uneven neurons with means, and a shared part that is uneven too."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((sentences, neurons)) * np.linspace(2.0, 0.1, neurons)
    found = []
    for _ in range(2):
        mixed = (shared + rng.standard_normal((sentences, neurons))) @ rng.standard_normal((neurons, neurons))
        found.append(mixed * np.exp(rng.normal(0, spread, neurons)) + rng.normal(0, 3, neurons))
    return found[0], found[1]


def inverse_root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(np.linalg.pinv(matrix))
    return vectors @ np.diag(np.sqrt(values)) @ vectors.T


def canonical(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    means = x.mean(axis=1, keepdims=True)
    tokens, _ = np.linalg.qr((directions.T @ (x - means) + means).T)
    weights = np.abs(tokens.T @ x.T).sum(axis=1)
    return (weights / weights.sum()) @ rho


def expected(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Both indexes of sentences x neurons."""
    x, y = (matrix[:, matrix.var(0) / np.abs(np.cov(matrix.T)).max() >= 1e-10] for matrix in (x, y))
    directions, rho = canonical(x.T, y.T)
    return {"cca-ecco": leading_mean(rho), "pwcca-ecco": weighted_mean(x.T, directions, rho)}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_steps_of_the_library(backend, seed):
    x, y = related(seed)
    found = compare(x, [y, x], ASKED, backend())
    assert found[0].values == pytest.approx(expected(x, y), abs=1e-8)
    assert found[1].values == pytest.approx(dict.fromkeys(ASKED.indexes, 1.0), abs=1e-4)
    # Neither is what the papers' definitions give.
    assert found[0].values["cca-ecco"] > similarity.similarity("cca", x, y) + 0.01
    assert abs(found[0].values["pwcca-ecco"] - similarity.similarity("pwcca", x, y)) > 0.01


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_neurons_of_very_different_sizes(backend):
    """One has less than 1e-10 of the largest variance and is left out; of another the added 1e-10 is a good part."""
    x, y = related(7)
    for neuron, share in ((2, 1e-11), (5, 1e-9)):
        x[:, neuron] *= np.sqrt(share * x.var(0).max() / x[:, neuron].var())
    want = expected(x, y)
    assert compare(x, [y], ASKED, backend())[0].values == pytest.approx(want, abs=1e-6)
    both = expected(np.delete(x, 2, axis=1), y)
    assert want == pytest.approx(both, abs=1e-12) and want != pytest.approx(expected(np.delete(x, 5, 1), y), abs=1e-3)


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_constant_neurons_are_left_out(backend):
    x, y = related(8)
    wide = [np.insert(matrix, place, 5.0, axis=1) for matrix, place in ((x, 3), (y, 6))]
    assert compare(wide[0], [wide[1]], ASKED, backend())[0].values == pytest.approx(expected(x, y), abs=1e-8)


@pytest.mark.parametrize("widths", [(5, 12), (12, 5)])
def test_different_numbers_of_neurons(widths):
    x, y = related(9)
    x, y = x[:, : widths[0]], y[:, : widths[1]]
    directions, rho = canonical(x.T, y.T)
    found = compare(x, [y], ASKED)[0].values
    assert found["cca-ecco"] == pytest.approx(leading_mean(rho), abs=1e-8)
    means = x.mean(0)
    tokens = np.linalg.qr((x - means) @ directions[:, :5] + means[:5])[0]
    weights = np.abs(tokens.T @ x).sum(1)
    assert found["pwcca-ecco"] == pytest.approx(weights @ rho / weights.sum(), abs=1e-8)


def test_hand_computed_leading_mean():
    """Orthonormal neurons: the correlations are their cosines, 1, 0.5 and 0.01, and the last is beyond 98 %."""
    rng = np.random.default_rng(10)
    q = rng.standard_normal((200, 6))
    q = np.linalg.qr(q - q.mean(0))[0]
    cosines = np.array([1.0, 0.5, 0.01])
    y = q[:, :3] * cosines + q[:, 3:] * np.sqrt(1 - cosines**2)
    found = compare(q[:, :3], [y], ASKED)[0].values
    assert found["cca-ecco"] == pytest.approx(0.75, abs=1e-8)
    assert similarity.similarity("cca", q[:, :3], y) == pytest.approx(1.51 / 3, abs=1e-8)
    # No means and no whitening to undo: every direction accounts for one neuron.
    assert found["pwcca-ecco"] == pytest.approx(1.51 / 3, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_svcca_is_that_of_the_library(seed):
    """20 directions of the centred matrix, then the plain mean of the correlations, with the same 1e-10."""
    x, y = related(seed, neurons=30)
    kept = []
    for matrix in (x.T, y.T):
        centred = matrix - matrix.mean(axis=1, keepdims=True)
        _, sizes, tokens = np.linalg.svd(centred, full_matrices=False)
        kept.append(np.diag(sizes[:20]) @ tokens[:20])
    _, rho = canonical(*kept)
    assert similarity.similarity("svcca", x, y) == pytest.approx(rho.mean(), abs=1e-6)


def test_too_few_sentences_are_told():
    x, y = related(11, sentences=12)
    assert compare(x, [y], ASKED)[0].saturated
    x, y = related(11)
    assert not compare(x, [y], ASKED)[0].saturated
