"""Distances of related and unrelated word pairs."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from crossalign.analysis import distances
from crossalign.analysis.distances import common_bins, measure, read_panel, top_share, write_panel
from crossalign.runtime.errors import UserError


def pairs(seed: int, count: int = 500, neurons: int = 120, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (spread * rng.standard_normal((count, 2, neurons))).astype(np.float32)


def test_histogram_counts_every_pair(monkeypatch):
    monkeypatch.setattr(distances, "ROWS", 64)
    related, unrelated = pairs(0, spread=0.5), pairs(1, count=300)
    panel = measure(related, unrelated)
    for kind, array in (("related", related), ("unrelated", unrelated)):
        lengths = np.linalg.norm(array[:, 0].astype(float) - array[:, 1].astype(float), axis=1)
        edges = panel.width * np.arange(len(panel.counts[kind]) + 1)
        assert panel.counts[kind].tolist() == np.histogram(lengths, edges)[0].tolist()
        assert panel.counts[kind].sum() == len(array)
    assert 1024 <= len(panel.counts["unrelated"]) <= 2049
    assert np.log2(panel.width) == int(np.log2(panel.width))


def test_summary_against_scikit_learn_and_by_hand():
    related, unrelated = pairs(2, spread=0.9), pairs(3, count=300)
    panel = measure(related, unrelated)
    lengths = [np.linalg.norm((a[:, 0] - a[:, 1]).astype(float), axis=1) for a in (related, unrelated)]
    labels = [0] * 500 + [1] * 300
    assert panel.summary["auc"] == pytest.approx(roc_auc_score(labels, np.concatenate(lengths)), abs=1e-6)
    shares = []
    for array in (related, unrelated):
        squares = np.sort(((array[:, 0].astype(float) - array[:, 1]) ** 2).sum(axis=0))[::-1]
        shares.append((squares[:10].sum() / squares.sum(), squares[:100].sum() / squares.sum()))
    assert (panel.summary["top10"], panel.summary["top100"]) == pytest.approx(tuple(np.mean(shares, axis=0)))
    assert panel.summary["pairs"] == 500


def test_common_bins_add_up():
    panels = [measure(pairs(k, spread=s), pairs(k + 9, spread=s)) for k, s in enumerate((0.01, 1.0, 37.0))]
    edges, merged = common_bins(panels, bins=100)
    assert len(edges) == 101 and edges[0] == 0.0
    for k, (panel, spread) in enumerate(zip(merged, (0.01, 1.0, 37.0), strict=True)):
        array = pairs(k, spread=spread).astype(float)
        lengths = np.linalg.norm(array[:, 0] - array[:, 1], axis=1)
        assert panel["related"].tolist() == np.histogram(lengths, edges)[0].tolist()
        assert lengths.max() < edges[-1]
    # The range is not much wider than the data.
    assert edges[-1] < 1.2 * max(len(p.counts["related"]) * p.width for p in panels)
    with pytest.raises(UserError, match="common bins of no histogram"):
        common_bins([])


def test_written_and_read_again(tmp_path):
    panel = measure(pairs(4, spread=0.3), pairs(5))
    write_panel(panel, tmp_path / "fr.csv", tmp_path / "fr.json")
    again = read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")
    assert again.width == panel.width
    for kind, counts in panel.counts.items():
        size = max(len(counts), len(again.counts[kind]))
        assert np.array_equal(*(np.pad(c, (0, size - len(c))) for c in (counts, again.counts[kind])))
    assert again.summary == pytest.approx(panel.summary, abs=1e-6)
    assert (tmp_path / "fr.csv").read_text().startswith("kind,left,right,count\nrelated,")


def test_reading_names_the_file(tmp_path):
    with pytest.raises(UserError, match="fr.csv: cannot read: No such file"):
        read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")
    (tmp_path / "fr.json").write_text("{}")
    (tmp_path / "fr.csv").write_text("kind,left,right,count\n")
    with pytest.raises(UserError, match="fr.csv: the histogram is empty"):
        read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")
    (tmp_path / "fr.csv").write_text("kind,left,right,count\nrelated,0.5,x,3\n")
    with pytest.raises(UserError, match="no histogram of distances"):
        read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")


def test_equal_vectors():
    same = np.repeat(pairs(6)[:, :1], 2, axis=1)
    panel = measure(same, same)
    assert panel.counts["related"].tolist() == [500]
    assert panel.summary == {"auc": 0.5, "top10": 0.0, "top100": 0.0, "pairs": 500}
    assert top_share(np.zeros(3), 2) == 0.0


def test_bad_input():
    good = pairs(7)
    bad = good.copy()
    bad[41, 1, 3] = np.nan
    with pytest.raises(UserError, match="unrelated: pair 42 has a number that is not finite"):
        measure(good, bad)
    with pytest.raises(UserError, match="unrelated: 119 neurons, but related has 120"):
        measure(good, good[..., 1:])
    for wrong in (good[:, 0], good[:, :1], good[:0], good.astype(int)):
        with pytest.raises(UserError, match="related: pairs x 2 x neurons of floating-point numbers expected, found"):
            measure(wrong, good)


def test_program(root, tmp_path):
    np.save(tmp_path / "r.npy", pairs(8, spread=0.1))
    np.save(tmp_path / "u.npy", pairs(9))
    command = [sys.executable, root / "scripts" / "measure_distances.py", "--related", tmp_path / "r.npy"]
    command += ["--unrelated", tmp_path / "u.npy", "--out", tmp_path / "fr.csv", "--summary", tmp_path / "fr.json"]
    subprocess.run(command, check=True)
    assert json.loads((tmp_path / "fr.json").read_text())["auc"] == 1.0
    (tmp_path / "u.npy").write_bytes(b"half")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "u.npy: not a complete .npy array" in done.stderr
