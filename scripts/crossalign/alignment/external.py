"""Alignment by a command-line program: our own fast_align.py, the original fast_align with atools, or eflomal."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crossalign.alignment.bitext import Lengths
from crossalign.alignment.links import LinkSet, parse_links, symmetrise
from crossalign.runtime.errors import UserError

PROGRAMS = ("builtin", "fast_align", "eflomal")
STANDARD_ERROR = 2
_FAST_ALIGN = ("-d", "-o", "-v")
_HOW = {
    "fast_align": "build it from its source (clab/fast_align on GitHub; needs cmake and a C++ compiler)",
    "atools": "it is built together with fast_align (clab/fast_align on GitHub)",
    "eflomal-align": "install the Python package eflomal",
}


def find_program(name: str, path: str | None) -> str:
    """The program's full path: in `path` (its folder, or one of its neighbours), else on PATH."""
    # A path to a file may give the program any name.
    if path is not None and Path(path).is_file() and name in ("fast_align", "eflomal-align"):
        return str(Path(path).resolve())
    folder = path if path is None or Path(path).is_dir() else str(Path(path).parent)
    program = shutil.which(name, path=folder)
    if program is None:
        where = "on PATH" if path is None else f"in {path}"
        raise UserError(
            f"{name} is not {where}: {_HOW[name]}, or give its place with --path, or use the program 'builtin'"
        )
    return program


def _run(command: Sequence[str], out: Path | None = None) -> None:
    """Run a command to its end; its messages go where ours go."""
    print("+", " ".join(map(str, command)), file=sys.stderr, flush=True)
    try:
        if out is None:
            status = subprocess.run(command, stdout=STANDARD_ERROR, check=False).returncode
        else:
            with out.open("wb") as stream:
                status = subprocess.run(command, stdout=stream, check=False).returncode
    except OSError as error:
        raise UserError(f"cannot run {command[0]}: {error.strerror}") from None
    if status:
        raise UserError(f"{Path(command[0]).name} ended with status {status}; its own messages are above")


def align(program: str, path: str | None, bitext: Path, method: str, threads: int, lengths: Lengths) -> LinkSet:
    """Align a bitext file in both directions and symmetrise; work files go beside it."""
    folder = bitext.parent
    forward, reverse, final = folder / "forward", folder / "reverse", folder / "final"
    if program == "builtin":
        script = Path(__file__).resolve().parents[2] / "fast_align.py"
        options = ["--symmetrise", method, "--threads", str(threads), "--out", str(final)]
        _run([sys.executable, str(script), "-i", str(bitext), *_FAST_ALIGN, *options])
    elif program == "fast_align":
        main, tools = find_program("fast_align", path), find_program("atools", path)
        _run([main, "-i", str(bitext), *_FAST_ALIGN], forward)
        _run([main, "-i", str(bitext), *_FAST_ALIGN, "-r"], reverse)
        command = "intersect" if method == "intersection" else method
        _run([tools, "-i", str(forward), "-j", str(reverse), "-c", command], final)
    elif program == "eflomal":
        main = find_program("eflomal-align", path)
        _run([main, "-i", str(bitext), "-f", str(forward), "-r", str(reverse), "--overwrite"])
        return symmetrise(_read(forward, main, lengths), _read(reverse, main, lengths), method)
    else:
        raise UserError(f"no alignment program is called {program!r}; choose one of {', '.join(PROGRAMS)}")
    return _read(final, program, lengths)


def _read(path: Path, program: str, lengths: Lengths) -> LinkSet:
    """Links of a program, checked against the sentences they belong to."""
    with path.open("rb") as stream:
        links = parse_links(stream, f"the links of {program}")
    if len(links) != len(lengths.numbers):
        raise UserError(f"{program} printed {len(links)} lines of links for {len(lengths.numbers)} sentence pairs")
    sentence = np.repeat(np.arange(len(links)), np.diff(links.starts))
    wrong = (links.source >= lengths.source[sentence]) | (links.target >= lengths.target[sentence])
    if wrong.any():
        first = int(np.argmax(wrong))
        number = int(lengths.numbers[sentence[first]]) + 1
        raise UserError(
            f"{program} linked words that are not there: {links.source[first]}-{links.target[first]} in line {number}"
        )
    return links


def spread(links: LinkSet, lengths: Lengths) -> LinkSet:
    """The same links with an empty line for each line of the pool that was not aligned."""
    count = np.zeros(lengths.lines, np.int64)
    count[lengths.numbers] = np.diff(links.starts)
    return LinkSet(np.concatenate(([0], np.cumsum(count))), links.source, links.target)
