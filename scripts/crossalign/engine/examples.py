"""Examples as flat arrays, and a folder of them: what a set becomes for a model's vocabulary is worked out once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crossalign.runtime.files import sha256, write_atomic

# Behind the name of a column of lists: where each list ends.
ENDS = ":ends"
# The files by which a model's folder says how texts become numbers.
VOCABULARY = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "config.json")


class FlatExamples(Sequence[Any]):
    """Examples of one form: a column is an array of numbers, or of lists of numbers one after another."""

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self.columns = columns
        self.names = [name for name in columns if not name.endswith(ENDS)]
        self.count = len(columns["record"])

    @classmethod
    def of(cls, examples: Sequence[dict[str, Any]]) -> FlatExamples:
        """The examples, of which there is one at least, as arrays."""
        columns: dict[str, np.ndarray] = {}
        for name, first in examples[0].items():
            values = [example[name] for example in examples]
            if isinstance(first, int):
                columns[name] = np.array(values)
            else:
                columns[name] = np.concatenate([np.asarray(value, dtype=np.int64) for value in values])
                columns[name + ENDS] = np.cumsum([len(value) for value in values])
        return cls(columns)

    @classmethod
    def joined(cls, parts: Sequence[FlatExamples], records: Sequence[int]) -> FlatExamples:
        """One after another; `records` says how many records each part is of."""
        before = np.cumsum([0, *records])
        columns = {}
        for name in parts[0].names:
            values = [part.columns[name] for part in parts]
            if name == "record":
                values = [value + start for value, start in zip(values, before[:-1], strict=True)]
            columns[name] = np.concatenate(values)
            if name + ENDS in parts[0].columns:
                columns[name + ENDS] = np.cumsum(np.concatenate([part.sizes(name) for part in parts]))
        return cls(columns)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One example: its numbers as such, its lists as arrays."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        example = {}
        for name in self.names:
            values, ends = self.columns[name], self.columns.get(name + ENDS)
            if ends is None:
                example[name] = int(values[number])
            else:
                example[name] = values[ends[number - 1] if number else 0 : ends[number]]
        return example

    def sizes(self, name: str) -> np.ndarray:
        """The lengths of the lists in a column."""
        return np.diff(self.columns[name + ENDS], prepend=0)


class Encoded:
    """The examples of prepared files by name, kept in `folder` for the jobs to come; without one they are made anew.

    A file of examples is of one code, prepared file, vocabulary, task and length: its name says which.
    """

    def __init__(self, folder: Path | None, code_hash: str, model: Path, files: Mapping[str, Path | None]) -> None:
        self.folder = folder if code_hash else None
        self.code_hash, self.model, self.files = code_hash, model, files

    def __call__(
        self, name: str, task: Any, records: Sequence[Any], tokenizer: Any, length: int, training: bool = False
    ) -> Sequence[Any]:
        """What `task.examples` gives for the records of a file."""
        if self.folder is None or not records:
            return task.examples(records, tokenizer, length, training=training)
        path = self.folder / f"{task.name}-{self._key(name, task, len(records), length, training)}.safetensors"
        if (kept := _read(path)) is not None:
            return kept
        flat = FlatExamples.of(task.examples(records, tokenizer, length, training=training))
        _write(path, flat)
        return flat

    def _key(self, name: str, task: Any, *more: object) -> str:
        files = [self.files[name], *(self.model / file for file in VOCABULARY)]
        sums = [sha256(file) if file.is_file() else None for file in files]
        known = [self.code_hash, sums, task.name, list(task.labels), task.causal, *more]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def _read(path: Path) -> FlatExamples | None:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return FlatExamples(load_file(path))
    except (OSError, SafetensorError, KeyError):
        return None  # not there, or damaged


def _write(path: Path, examples: FlatExamples) -> None:
    from safetensors.numpy import save

    low = {
        name: np.ascontiguousarray(values, np.int64 if name.endswith(ENDS) else np.int32)
        for name, values in examples.columns.items()
    }
    with write_atomic(path, "wb") as stream:
        stream.write(save(low))
