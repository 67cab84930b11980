"""Scores made ahead of their job: a fine-tuning leaves those of its model, and the evaluation takes them if they fit.

They fit if model, sets, code and options are the very ones. Whatever is in doubt is evaluated.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from crossalign.engine.hyperparameters import folder_identity
from crossalign.runtime.files import sha256, write_atomic, write_json

SCORES, PREDICTIONS = "scores.json", "predictions.jsonl.gz"
# Written last: says whose scores these are, and that they are complete.
NOTE = "complete.json"


def identity(tuned: Path, base: Path, sets: Mapping[str, Path], *more: object) -> str:
    """Stands for all that scores depend on; `more` is the code and the options.

    The weights of the base count by samples, as everywhere; all other files by their whole content.
    """
    files = {f"sets/{name}": file for name, file in sets.items()}
    files |= {f"tuned/{file.name}": file for file in tuned.iterdir()}
    files |= {f"base/{file.name}": file for file in base.iterdir() if file.suffix != ".safetensors" and file.is_file()}
    sums = {name: sha256(file) for name, file in files.items()}
    known = json.dumps([sums, folder_identity(base), more], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()


def leave(folder: Path, key: str) -> None:
    """Say that the scores in a folder are complete."""
    write_json(folder / NOTE, {"identity": key} | {name: sha256(folder / name) for name in (SCORES, PREDICTIONS)})


def take(folder: Path, key: str, scores: Path, predictions: Path | None) -> bool:
    """Copy scores to their places; whether they were there, complete and of this identity."""
    try:
        found = {name: (folder / name).read_bytes() for name in (SCORES, PREDICTIONS)}
        note = json.loads((folder / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if note != {"identity": key} | {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}:
        return False
    for name, place in ((PREDICTIONS, predictions), (SCORES, scores)):
        if place is not None:
            with write_atomic(place, "wb") as stream:
                stream.write(found[name])
    return True


def forget(folder: Path) -> None:
    """Delete scores that have been taken, or are going to be made anew; the note goes first."""
    with contextlib.suppress(OSError):
        (folder / NOTE).unlink()
    shutil.rmtree(folder, ignore_errors=True)
