"""The settings of a fine-tuning from its trials: those of the best score on the dev set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossalign.runtime.errors import UserError

SEARCHED = ("batch", "learning_rate")


def best_settings(files: Sequence[Path], task: str, init: str, metric: str) -> tuple[dict[str, Any], list[dict]]:
    """The settings of the best trial, the first of equals, and an account of all.

    `files` are the training.json of the trials. They must be of the same task and initialisation.
    """
    trials = [_read(file, task, init, metric) for file in files]
    best = max(trials, key=lambda trial: trial["dev"])
    return {name: best[name] for name in SEARCHED}, trials


def _read(file: Path, task: str, init: str, metric: str) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if (found["task"], found["init"]) != (task, init):
            raise UserError(
                f"--trials {file}: a trial of {found['task']} and {found['init']}, not of {task} and {init}"
            )
        if found["best_epoch"] is None:
            raise UserError(f"--trials {file}: no score on a dev set, by which to choose")
        score = found["dev"][found["best_epoch"] - 1][metric]
        return {name: found["settings"][name] for name in (*SEARCHED, "seed")} | {"dev": score}
    except OSError as error:
        raise UserError(f"--trials {file}: cannot read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(f"--trials {file}: not the account of a training: {error!r}") from None
