"""Cross-validation folds for treebanks that were released without training data.

Of five folds, three train, one is for development and one for testing; each sentence is tested in exactly one of the
five rotations.
"""

import hashlib
from collections.abc import Hashable, Sequence

PARTS = ("train", "dev", "test")


def assign_folds(keys: Sequence[Hashable], folds: int, seed: int) -> list[int]:
    """The fold, 0 to folds - 1, of every item. Items with equal keys share a fold, so none is trained on and tested.

    The order is drawn from digests of seed and position: the same on every machine and Python.
    """
    first: dict[Hashable, int] = {}
    for position, key in enumerate(keys):
        first.setdefault(key, position)
    drawn = sorted(first.values(), key=lambda position: (_draw(seed, position), position))
    fold_of = {position: rank % folds for rank, position in enumerate(drawn)}
    return [fold_of[first[key]] for key in keys]


def _draw(seed: int, position: int) -> bytes:
    return hashlib.sha256(f"{seed}:{position}".encode()).digest()


def part_of(fold: int, rotation: int, folds: int) -> str:
    """What a fold serves for in rotation 1 to `folds`: `test`, `dev` (the next fold, round and round) or `train`."""
    return {0: "test", 1: "dev"}.get((fold - (rotation - 1)) % folds, "train")
