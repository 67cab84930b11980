"""Parameters of a trained model in fast_align's text table (`-p`), so that new text can be aligned without training."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossalign.alignment.bitext import Bitext
from crossalign.alignment.kernels import Workers
from crossalign.alignment.model import BUDGET_MB, FLOOR, Aligner, Options
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

NULL_WORD = b"<eps>"


@dataclass
class Parameters:
    """Translation probabilities of one direction, row by row of source words, and the settings that go with them."""

    source_words: list[bytes]
    target_words: list[bytes]
    row_start: np.ndarray
    row_target: np.ndarray
    prob: np.ndarray
    null_prob: np.ndarray
    tension: float
    length_ratio: float
    options: Options

    @classmethod
    def of(cls, aligner: Aligner) -> "Parameters":
        """What a trained aligner has learnt."""
        table, bitext = aligner.table, aligner.bitext
        return cls(
            bitext.source.words, bitext.target.words, table.row_start, table.row_target, aligner.prob,
            aligner.null_prob, aligner.tension, aligner.length_ratio, aligner.options,
        )  # fmt: skip

    def aligner(self, bitext: Bitext, workers: Workers | None = None, budget_mb: float = BUDGET_MB) -> Aligner:
        """An aligner for another bitext with these parameters; pairs never seen get fast_align's floor of 1e-9."""
        aligner = Aligner(bitext, self.options, workers, budget_mb)
        aligner.tension, aligner.length_ratio = self.tension, self.length_ratio
        unknown = len(self.target_words)
        known = {word: number for number, word in enumerate(self.target_words)}
        translate = np.array([known.get(word, unknown) for word in bitext.target.words], np.int64)
        aligner.null_prob = np.append(self.null_prob, FLOOR)[translate]
        rows = {word: number for number, word in enumerate(self.source_words)}
        scratch = np.full(unknown + 1, FLOOR)
        table = aligner.table
        for number, word in enumerate(bitext.source.words):
            row = rows.get(word)
            if row is None:
                continue
            mine = slice(self.row_start[row], self.row_start[row + 1])
            entries = slice(table.row_start[number], table.row_start[number + 1])
            scratch[self.row_target[mine]] = self.prob[mine]
            aligner.prob[entries] = scratch[translate[table.row_target[entries]]]
            scratch[self.row_target[mine]] = FLOOR
        return aligner


def write_table(path: str | Path, parameters: Parameters, beam: float) -> None:
    """Write fast_align's text table: source word, target word, natural logarithm of the probability.

    A row keeps entries whose logarithm is at least -beam times that of its largest entry (fast_align's rule).
    """
    rows = [(NULL_WORD, np.arange(len(parameters.target_words)), parameters.null_prob)]
    if not parameters.options.use_null:
        rows = []
    for number, word in enumerate(parameters.source_words):
        span = slice(parameters.row_start[number], parameters.row_start[number + 1])
        rows.append((word, parameters.row_target[span], parameters.prob[span]))
    with write_atomic(path, "wb") as stream, np.errstate(divide="ignore"):
        for word, targets, prob in rows:
            logs = np.log(prob)
            kept = logs >= -beam * logs.max() if len(logs) else []
            for target, value in zip(targets[kept].tolist(), logs[kept].tolist(), strict=True):
                stream.write(b"%s\t%s\t%.17g\n" % (word, parameters.target_words[target], value))


def read_table(path: str | Path, options: Options, length_ratio: float) -> Parameters:
    """Read fast_align's text table; a UserError names the line that is not in its format."""
    rows: dict[bytes, dict[bytes, float]] = {NULL_WORD: {}}
    try:
        with Path(path).open("rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    source, target, value = line.split()
                    rows.setdefault(source, {})[target] = math.exp(float(value))
                except (ValueError, OverflowError):
                    raise UserError(
                        f"{path}, line {number}: not 'source word, target word, log probability' in three columns"
                    ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    null = rows.pop(NULL_WORD)
    targets = {
        word: number for number, word in enumerate(dict.fromkeys(w for row in (null, *rows.values()) for w in row))
    }
    null_prob = np.array([null.get(word, FLOOR) for word in targets])
    lengths = np.cumsum([0, *(len(row) for row in rows.values())])
    row_target = np.array([targets[word] for row in rows.values() for word in row], np.int32)
    prob = np.array([value for row in rows.values() for value in row.values()])
    return Parameters(
        list(rows), list(targets), lengths, row_target, prob, null_prob, options.tension, length_ratio, options
    )
