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
    def work():
        with ArrayWriter() as writer:
            writer.begin("en", tmp_path / "en.npy", (1, 2, 3))
            writer.add(torch.zeros(1, 2, 3))
            writer.begin("fr", tmp_path / "fr.npy", (1, 2, 3))
            writer.add(torch.zeros(1, 1, 3))
            raise UserError("stop")

    with pytest.raises(UserError, match="stop"):
        work()
    assert [path.name for path in tmp_path.iterdir()] == ["en.npy"]


def test_what_lies_beside_a_file_comes_with_it_or_not_at_all(tmp_path):
    def work(stop):
        with ArrayWriter() as writer:
            counts = np.zeros(2, dtype=np.int32)
            writer.begin("en", tmp_path / "en.npy", (1, 2, 3), {tmp_path / "en.lengths.npy": counts})
            writer.add(torch.zeros(1, 2, 3))
            counts[:] = 4, 5
            if stop:
                raise UserError("stop")

    with pytest.raises(UserError, match="stop"):
        work(stop=True)
    assert list(tmp_path.iterdir()) == []
    work(stop=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["en.lengths.npy", "en.npy"]
    assert np.load(tmp_path / "en.lengths.npy").tolist() == [4, 5]


@pytest.mark.parametrize("pieces", [1, 3])
def test_an_array_with_too_few_or_too_many_rows_is_not_kept(pieces, tmp_path):
    def work():
        with ArrayWriter() as writer:
            writer.begin("en", tmp_path / "en.npy", (2, 2, 3))
            for _ in range(pieces):
                writer.add(torch.zeros(2, 1, 3))

    with pytest.raises(UserError, match=rf"en\.npy: {pieces} of 2 rows"):
        work()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pieces", [1, 5])
def test_a_full_disk_is_told_and_leaves_nothing(pieces, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def work():
        with ArrayWriter() as writer:
            writer.begin("en", tmp_path / "en.npy", (1, pieces, 3))
            for _ in range(pieces):
                writer.add(torch.zeros(1, 1, 3))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(UserError, match=r"en\.npy: cannot write: No space left on device"):
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
