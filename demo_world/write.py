"""Writes the files of the world, with several processes."""

import hashlib
import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic
from demo_world import files as makers
from demo_world.files import Part, WorldFile, plan
from demo_world.formats import gzip_stored, parquet, tar_gz_stored, xz_stored, zip_stored
from demo_world.world import World


def _pack(container: str, parts: list[tuple[str, Any]]) -> bytes:
    """The bytes of a file from its parts."""
    if container == "parquet":
        return parquet(parts[0][1])
    members = [(name, (content[name] if isinstance(content, dict) else content).encode()) for name, content in parts]
    if container == "wikiann":
        by_code: dict[str, list[tuple[str, bytes]]] = {}
        for name, content in members:
            code, split = name.split("/")
            by_code.setdefault(code, []).append((split, content))
        return zip_stored((f"{code}.tar.gz", tar_gz_stored(files)) for code, files in by_code.items())
    if container in ("zip", "tar.gz"):
        return (zip_stored if container == "zip" else tar_gz_stored)(members)
    wrap: Callable[[bytes], bytes] = {"plain": bytes, "gz": gzip_stored, "xz": xz_stored}[container]
    return wrap(members[0][1])


_world: World | None = None


def _start(settings: dict[str, Any], scale: str) -> None:
    global _world
    _world = World(settings, scale)


def _make(part: Part) -> Any:
    return getattr(makers, part.maker)(_world, *part.arguments)


def write_world(
    settings: dict[str, Any], out: str | Path, only: list[str] | None = None, jobs: int = 1, scale: str = "demo"
) -> list[str]:
    """Write the files (those whose path starts with one of `only`, if given), SHA256SUMS last. Gives their paths."""
    if scale not in ("demo", "pretraining"):
        raise UserError(f"scale {scale!r} is unknown; demo or pretraining is right")
    if jobs < 1:
        raise UserError(f"jobs is {jobs}; 1 or more is right")
    files = [file for file in plan(settings) if not only or file.path.startswith(tuple(only))]
    if not files:
        raise UserError(f"no file of the world starts with {' or '.join(only or [])}")
    out = Path(out)
    # A stale list of checksums would vouch for files that are being replaced.
    (out / "SHA256SUMS").unlink(missing_ok=True)
    # Each part is made once and apart from all others, so the result does not depend on the number of processes.
    parts = list(dict.fromkeys(part for file in files for _, part in file.parts))
    if jobs == 1:
        _start(settings, scale)
        sums = _write(files, zip(parts, map(_make, parts), strict=True), out)
    else:
        with multiprocessing.get_context("spawn").Pool(jobs, _start, (settings, scale)) as pool:
            sums = _write(files, zip(parts, pool.imap(_make, parts), strict=True), out)
    with write_atomic(out / "SHA256SUMS") as stream:
        stream.writelines(f"{digest}  {path}\n" for path, digest in sorted(sums))
    return [file.path for file in files]


def _write(files: list[WorldFile], made: Iterator[tuple[Part, Any]], out: Path) -> list[tuple[str, str]]:
    """Finished parts come in the order of their need; each is kept until the last file that needs it."""
    ready: dict[Part, Any] = {}
    sums = []
    last = {part: file.path for file in files for _, part in file.parts}
    for file in files:
        while any(part not in ready for _, part in file.parts):
            ready.update([next(made)])
        data = _pack(file.container, [(name, ready[part]) for name, part in file.parts])
        for _, part in file.parts:
            if last[part] == file.path:
                ready.pop(part, None)
        with write_atomic(out / file.path, "wb") as stream:
            stream.write(data)
        sums.append((file.path, hashlib.sha256(data).hexdigest()))
    return sums
