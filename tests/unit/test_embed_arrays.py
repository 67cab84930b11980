"""Arrays written piece by piece: the same bytes as numpy's, complete or absent."""

import errno
import os

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossalign.embedding.arrays import ArrayWriter
from crossalign.runtime.errors import UserError


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(1, 3), st.integers(1, 4))
def test_pieces_make_the_array(tmp_path_factory, sizes, layers, width):
    folder = tmp_path_factory.mktemp("arrays")
    wanted = {name: torch.randn(layers, sum(sizes), width) for name in ("en", "fr")}
    with ArrayWriter() as writer:
        for name, array in wanted.items():
            writer.begin(name, folder / f"{name}.npy", tuple(array.shape))
            for piece in array.split(sizes, 1):
                writer.add(piece.contiguous())
            assert (writer.name, writer.rows) == (name, sum(sizes))
    for name, array in wanted.items():
        assert np.array_equal(np.load(folder / f"{name}.npy"), array.numpy())
    assert len(list(folder.iterdir())) == 2


def test_an_error_leaves_the_finished_files_only(tmp_path):
    """What lies beside a file comes with it, as it is at the end, or not at all."""
    counts = {lang: np.zeros(2, dtype=np.int32) for lang in ("en", "fr")}

    def work():
        with ArrayWriter() as writer:
            for lang, count in counts.items():
                writer.begin(lang, tmp_path / f"{lang}.npy", (1, 2, 3), {tmp_path / f"{lang}.lengths.npy": count})
                writer.add(torch.zeros(1, 2, 3))
                count[:] = 4, 5
            raise UserError("stop")

    with pytest.raises(UserError, match="stop"):
        work()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["en.lengths.npy", "en.npy"]
    assert np.load(tmp_path / "en.lengths.npy").tolist() == [4, 5]


@pytest.mark.parametrize(
    ("pieces", "rows", "full", "message"),
    [
        (1, 2, False, "1 of 2 rows"),
        (3, 2, False, "3 of 2 rows"),
        (1, 1, True, "cannot write: No space left on device"),
        (5, 5, True, "cannot write: No space left on device"),
    ],
)
def test_what_is_not_complete_is_told_and_leaves_nothing(pieces, rows, full, message, tmp_path, monkeypatch):
    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def work():
        with ArrayWriter() as writer:
            writer.begin("en", tmp_path / "en.npy", (2, rows, 3))
            for _ in range(pieces):
                writer.add(torch.zeros(2, 1, 3))

    if full:
        monkeypatch.setattr(os, "pwrite", no_room)
    with pytest.raises(UserError, match=rf"en\.npy: {message}"):
        work()
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path, monkeypatch):
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: pwrite(file, data[:5], offset))
    array = torch.randn(2, 3, 4)
    with ArrayWriter() as writer:
        writer.begin("en", tmp_path / "en.npy", (2, 3, 4))
        writer.add(array)
    assert np.array_equal(np.load(tmp_path / "en.npy"), array.numpy())
