"""What tells one training, or one model folder, from another."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def fingerprint(recipe: str, settings: Any, *more: Any) -> str:
    """A short hash of everything that decides the outcome; `more` is JSON or arrays.

    A checkpoint with another one must not be continued.
    """
    import numpy as np

    digest = hashlib.sha256(json.dumps([recipe, settings.model_dump()], sort_keys=True).encode())
    for item in more:
        if isinstance(item, np.ndarray):
            digest.update(str((item.dtype, item.shape)).encode())
            digest.update(np.ascontiguousarray(item).tobytes())
        else:
            digest.update(json.dumps(item, sort_keys=True).encode())
    return f"{recipe}-{digest.hexdigest()[:16]}"


def folder_identity(folder: str | Path) -> dict[str, Any]:
    """Sizes and the head of each weight file of a model folder: cheap, and different for different models.

    The head of a safetensors file holds names and offsets only, so a slice of the data belongs to it too.
    """
    identity = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        size = path.stat().st_size
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            for share in range(16):
                stream.seek(size * share // 16)
                digest.update(stream.read(4096))
        identity[path.name] = [size, digest.hexdigest()[:16]]
    return identity
