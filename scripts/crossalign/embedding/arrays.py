"""Write large arrays of layers x rows x columns piece by piece, while the next piece is being computed."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

# Pieces that may wait to be written; those of a GPU each in a buffer of its own, of so many bytes. A power of two:
# PyTorch takes page-locked memory in such sizes.
_WAITING = 2
_BUFFER = 32 << 20


class ArrayWriter:
    """Files in .npy format, one after another; a context manager. Each appears complete or not at all."""

    def __init__(self) -> None:
        # One thread: a file is finished after its last piece is written.
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[Future] = deque()
        self._files: list[_File] = []
        self._buffers = [torch.empty(0)] * _WAITING
        self._turn = 0
        self.name: str | None = None
        self.rows = 0

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
                for future in self._waiting:
                    future.result()
        finally:
            self._thread.shutdown()
            for file in self._files:
                file.abandon()

    def begin(
        self, name: str, path: Path, shape: tuple[int, int, int], beside: dict[Path, np.ndarray] | None = None
    ) -> None:
        """Start the next file; the one before it must have all its rows.

        Small arrays `beside` it are written just before the file gets its name, so whoever finds the file finds them.
        """
        self._finish()
        self._files.append(_File(path, shape, beside or {}))
        self.name, self.rows = name, 0

    def _finish(self) -> None:
        if self._files:
            self._files[-1].check(self.rows)
            self._make_room()
            self._waiting.append(self._thread.submit(self._files[-1].finish))

    def _make_room(self) -> None:
        """Wait for the oldest piece of work if there are enough; raises what went wrong with it."""
        if len(self._waiting) == _WAITING:
            self._waiting.popleft().result()

    def add(self, piece: Tensor) -> None:
        """Append rows (layers x some rows x columns); what lies on a GPU comes to the host some rows at a time."""
        few = piece.shape[1] if piece.device.type == "cpu" else max(1, _BUFFER // (4 * piece.shape[0] * piece.shape[2]))
        for rows in piece.split(max(1, few), 1):
            self._make_room()
            self._waiting.append(self._thread.submit(self._files[-1].put, *self._fetch(rows), self.rows))
            self.rows += rows.shape[1]

    def _fetch(self, rows: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        """Rows in host memory; from a GPU a copy that is under way, and the event of its end."""
        if rows.device.type == "cpu":
            return rows, None
        self._turn = (self._turn + 1) % _WAITING
        if len(self._buffers[self._turn]) < rows.numel():
            self._buffers[self._turn] = torch.empty(max(rows.numel(), _BUFFER // 4), pin_memory=True)
        host = self._buffers[self._turn][: rows.numel()].view(rows.shape)
        with torch.cuda.device(rows.device):
            host.copy_(rows.contiguous(), non_blocking=True)
            event = torch.cuda.Event()
            event.record()
        return host, event


class _File:
    """One array on its way to the disk."""

    def __init__(self, path: Path, shape: tuple[int, int, int], beside: dict[Path, np.ndarray]) -> None:
        self._path, self._shape, self._beside = path, shape, beside
        self._opened = write_atomic(path, "wb")
        stream = self._opened.__enter__()
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.flush()
        self._number, self._data = stream.fileno(), stream.tell()
        self._failed = self._done = False

    def check(self, rows: int) -> None:
        """Refuse an array with holes."""
        if rows != self._shape[1]:
            raise UserError(f"{self._path}: {rows} of {self._shape[1]} rows; the text changed while it was read")

    def put(self, rows: Tensor, event: torch.cuda.Event | None, start: int) -> None:
        """Write rows from `start` on, layer by layer."""
        if event is not None:
            event.synchronize()
        _, total, width = self._shape
        try:
            for layer, block in enumerate(rows.numpy()):
                self._write(memoryview(block).cast("B"), self._data + 4 * width * (layer * total + start))
        except OSError as error:
            self._failed = True
            raise UserError(f"{self._path}: cannot write: {error.strerror}") from None

    def _write(self, data: memoryview, offset: int) -> None:
        # Not through a memory map: its pages would count as this program's memory until the end.
        while data:
            done = os.pwrite(self._number, data, offset)
            data, offset = data[done:], offset + done

    def finish(self) -> None:
        """Give the file its name, unless a piece is missing."""
        if self._failed:
            return
        for path, array in self._beside.items():
            with write_atomic(path, "wb") as stream:
                np.save(stream, array)
        try:
            self._opened.__exit__(None, None, None)
        except OSError as error:
            raise UserError(f"{self._path}: cannot write: {error.strerror}") from None
        finally:
            self._done = True

    def abandon(self) -> None:
        """Remove what is not finished."""
        if not self._done:
            error = InterruptedError("not finished")
            self._opened.__exit__(type(error), error, None)
