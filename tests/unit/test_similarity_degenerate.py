"""What the similarity indexes do with input that has no plain answer."""

import math

import numpy as np
import pytest

from crossalign.analysis import backends, similarity
from crossalign.analysis.backends import NumpyBackend, TorchBackend, choose_backend
from crossalign.analysis.indexes import VARIANCE
from crossalign.analysis.similarity import INDEXES, Options, compare
from crossalign.runtime.errors import UserError

LINEAR = ("cka", "cka-uncentred", "cka-rbf", "cca", "cca-squared", "svcca", "pwcca")


@pytest.fixture(params=[NumpyBackend, lambda: TorchBackend("cpu")], ids=["numpy", "torch"])
def backend(request):
    return request.param()


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("constant", [0.0, 0.1, 3e7])
def test_constant_neuron(backend, constant):
    x, y = normal(0, 60, 5), normal(1, 60, 5)
    with_constant = np.insert(x, 2, np.float32(constant), axis=1)
    wider = np.insert(y, 2, normal(2, 60), axis=1)
    found = compare(with_constant, [wider], Options(), backend)[0]
    plain = compare(x, [y], Options(), backend)[0]
    assert math.isnan(found.neurons[2])
    assert np.delete(found.neurons, 2) == pytest.approx(plain.neurons, abs=1e-8)
    # Of six neurons one counts as zero.
    assert found.values["anc"] == pytest.approx(plain.values["anc"] * 5 / 6, abs=1e-8)
    both = compare(with_constant, [np.insert(y, 2, np.float32(1.0), axis=1)], Options(LINEAR), backend)[0].values
    for name in LINEAR:
        if name != "cka-uncentred":
            assert both[name] == pytest.approx(plain.values[name], abs=1e-8), name


@pytest.mark.parametrize("kind", ["zero", "constant"])
def test_matrix_without_variation(backend, kind):
    flat = np.full((30, 4), 0.0 if kind == "zero" else 0.7, dtype=np.float32)
    other = normal(3, 30, 4)
    for pair in ((flat, other), (other, flat), (flat, flat)):
        values = compare(pair[0], [pair[1]], Options(), backend)[0].values
        undefined = set(INDEXES) - {"matching"} - ({"cka-uncentred"} if kind == "constant" else set())
        assert {name for name, value in values.items() if math.isnan(value)} == undefined
        if kind == "zero":
            assert values["matching"] == 0.0
    # One bad pair does not spoil the others of the job.
    good, bad = compare(other, [normal(4, 30, 4), flat], Options(), backend)
    assert not any(math.isnan(value) for value in good.values.values())
    assert math.isnan(bad.values["cca"])
    assert good.values == pytest.approx(compare(other, [normal(4, 30, 4)], Options(), backend)[0].values, abs=1e-12)


def test_fewer_sentences_than_neurons(backend):
    x, y = normal(5, 12, 40), normal(6, 12, 40)
    found = compare(x, [y], Options(svcca_directions=4), backend)[0]
    assert found.saturated
    for name in ("cca", "cca-squared", "pwcca"):
        assert found.values[name] == pytest.approx(1.0, abs=1e-8)
    assert found.values["svcca"] < 0.999
    centred = [m.astype(np.float64) - m.astype(np.float64).mean(axis=0) for m in (x, y)]
    grams = [m @ m.T for m in centred]
    want = (grams[0] * grams[1]).sum() / np.linalg.norm(grams[0]) / np.linalg.norm(grams[1])
    assert found.values["cka"] == pytest.approx(want, abs=1e-8)
    leading = [np.linalg.svd(m, full_matrices=False)[0][:, :4] for m in centred]
    want = np.linalg.svd(leading[0].T @ leading[1], compute_uv=False).mean()
    assert found.values["svcca"] == pytest.approx(want, abs=1e-8)
    assert not compare(normal(5, 50, 4), [normal(6, 50, 4)], Options(), backend)[0].saturated


def test_dependent_neurons_count_once(backend):
    x, y = normal(7, 80, 6), normal(8, 80, 6)
    doubled = np.hstack([x, x[:, :3], x[:, :1] + x[:, 1:2]])
    asked = Options(("cca", "cca-squared"))
    plain = compare(x, [y], asked, backend)[0].values
    assert compare(doubled, [y], asked, backend)[0].values == pytest.approx(plain, abs=1e-6)
    # Without float32 rounding of the sum the dependency is exact, and so is the answer.
    exact = np.hstack([x, x[:, :3]])
    assert compare(exact, [y], asked, backend)[0].values == pytest.approx(plain, abs=1e-8)
    # All but the index whose weights count directions that neurons do not have.
    whole = [name for name in INDEXES if name not in ("pwcca-ecco", *VARIANCE)]
    assert compare(exact, [exact], Options(whole), backend)[0].values == pytest.approx(
        dict.fromkeys(whole, 1.0), abs=1e-8
    )


def test_one_neuron(backend):
    x, y = normal(9, 40, 1), normal(10, 40, 1)
    corr = abs(np.corrcoef(x[:, 0].astype(float), y[:, 0].astype(float))[0, 1])
    values = compare(x, [y], Options(), backend)[0].values
    for name, want in {"anc": corr, "cca": corr, "svcca": corr, "pwcca": corr, "cka": corr**2}.items():
        assert values[name] == pytest.approx(want, abs=1e-8), name


def test_more_svcca_directions_than_rank(backend):
    x, y = normal(11, 50, 5), normal(12, 50, 5)
    values = compare(x, [y], Options(("cca", "svcca"), svcca_directions=99), backend)[0].values
    assert values["svcca"] == pytest.approx(values["cca"], abs=1e-8)


def test_equal_sentences(backend):
    x, y = normal(13, 40, 6), normal(14, 40, 6)
    x[20:], y[20:] = x[:20], y[:20]
    values = compare(x, [y], Options(), backend)[0].values
    half = compare(x[:20], [y[:20]], Options(), backend)[0].values
    # Every sentence twice changes no second moment but its size; the kernel's median leaves the zero distances out.
    for name, value in values.items():
        assert value == pytest.approx(half[name], abs=1e-8), name
    assert compare(x, [x], Options(("matching",)), backend)[0].values["matching"] == 1.0


def test_zero_sentence_is_never_found(backend):
    x = normal(15, 10, 4)
    y = x.copy()
    y[3] = 0.0
    assert compare(x, [y], Options(("matching",)), backend)[0].values["matching"] == 0.9
    assert compare(y, [x], Options(("matching",)), backend)[0].values["matching"] == 0.9
    assert compare(-np.abs(y), [np.abs(y)], Options(("matching",)), backend)[0].values["matching"] < 0.9


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e15, 1e30])
def test_sizes_far_from_one(backend, scale):
    x, y = normal(16, 50, 5), normal(17, 50, 5)
    scaled = (y * np.float32(scale)).astype(np.float32)
    plain = compare(x, [y], Options(), backend)[0].values
    assert compare(x, [scaled], Options(), backend)[0].values == pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("index", INDEXES)
def test_numbers_that_are_not_finite(backend, index, bad):
    x, y = normal(18, 30, 4), normal(19, 30, 4)
    y[6, 2] = bad
    backend.block = 5
    with pytest.raises(UserError, match=rf"^layer 3 of fr: sentence 7, neuron 2 is {bad}; every number must be finite"):
        compare(x, [y], Options((index,)), backend, ["layer 3 of en", "layer 3 of fr"])


def test_shapes_that_do_not_fit():
    x = normal(20, 30, 4)
    with pytest.raises(UserError, match="Y: 29 sentences, but X has 30; row n of both must be the same sentence"):
        similarity.similarity("cka", x, x[:29])
    with pytest.raises(UserError, match="Y: 3 neurons, but X has 4; anc compares neuron by neuron"):
        similarity.similarity("anc", x, x[:, :3])
    with pytest.raises(UserError, match="Y: 3 neurons, but X has 4; sentence matching needs the same number"):
        similarity.similarity("matching", x, x[:, :3])
    with pytest.raises(UserError, match="X: at least two sentences and one neuron are needed, the array is 1 x 4"):
        similarity.similarity("cka", x[:1], x[:1])
    with pytest.raises(UserError, match="X: at least two sentences and one neuron are needed, the array is 30 x 0"):
        similarity.similarity("cka", x[:, :0], x)
    with pytest.raises(UserError, match="X: an array of sentences x neurons is needed, this one has 1 dimensions"):
        similarity.similarity("cka", x[0], x[0])
    with pytest.raises(UserError, match="X: floating-point numbers are needed, not int64"):
        similarity.similarity("cka", np.ones((3, 3), dtype=np.int64), x)


def test_options_that_make_no_sense():
    with pytest.raises(UserError, match="index 'kca' is not one of cka, cka-uncentred"):
        Options(("kca",))
    with pytest.raises(UserError, match="SVCCA with 0 directions: at least 1 is needed"):
        Options(svcca_directions=0)
    with pytest.raises(UserError, match=r"SVCCA with a share of 1\.5 of the variance"):
        Options(svcca_variance=1.5)


def test_devices(monkeypatch):
    import torch

    assert isinstance(choose_backend("cpu"), NumpyBackend)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert isinstance(choose_backend("auto"), NumpyBackend)
    with pytest.raises(
        UserError, match="device 'cuda' was asked for but PyTorch sees no CUDA device; use --device cpu"
    ):
        choose_backend("cuda")
    with pytest.raises(UserError, match="device 'tpu9' is not one of auto, cpu, cuda"):
        choose_backend("tpu9")


def test_auto_asks_for_a_gpu_only_where_there_is_one_and_much_to_do(monkeypatch):
    asked = []
    monkeypatch.setattr(backends, "_gpu_usable", lambda: asked.append(1) or False)
    monkeypatch.setattr(backends.sys, "platform", "linux")
    monkeypatch.setattr(backends, "_DRIVERS", ("/dev/null",))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    choose_backend("auto", 1e9)
    assert not asked
    choose_backend("auto", 1e12)
    assert len(asked) == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    choose_backend("auto", 1e12)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(backends, "_DRIVERS", ("/dev/no-such-driver",))
    choose_backend("auto", 1e12)
    assert len(asked) == 1
