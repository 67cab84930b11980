"""What the programs that train have in common: flags, and what stands at the end of training.json."""

from __future__ import annotations

import argparse
import gc
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    import torch


def add_run(parser: argparse.ArgumentParser) -> None:
    """Flags of one run: its seed, its places, its device."""
    add = parser.add_argument
    add("--seed", type=int, default=1)
    add("--out", required=True, type=Path)
    add("--checkpoints", type=Path, help="folder for checkpoints; none are written without it")
    add("--code-hash", "--recipe", default="", help="identifies the code; checkpoints of other code are refused")
    add("--save-steps", type=positive, help="write a checkpoint after so many steps instead of every 5 minutes")
    add(
        "--rehearse", type=positive, metavar="STEPS",
        help="stop after so many steps and note in training.json what the others would have taken",
    )  # fmt: skip
    add("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def add_backend(parser: argparse.ArgumentParser) -> None:
    """The flag of programs that load a model."""
    parser.add_argument(
        "--backend", default="auto", choices=["auto", "own", "library", "bidirectional"],
        help="what computes the model: our encoder or the library's; auto: ours where it knows the shape; "
        "bidirectional: the library's, a decoder that sees both sides",
    )  # fmt: skip


def add_precision(parser: argparse.ArgumentParser) -> None:
    """The flag of programs whose model may be trained in either."""
    parser.add_argument("--precision", default="auto", help="auto, fp32 or bf16")


def add_tokens(parser: argparse.ArgumentParser) -> None:
    """The flag of programs that read prepared sets."""
    parser.add_argument("--tokens", type=Path, help="folder for tokenised sets, to share them between runs")


def run_program(program: str, *words: object) -> None:
    """Run another program in this process. Nothing imports it, so it is no part of this one's code hash."""
    gc.collect()  # a training holds itself, and with it the GPU's memory
    sys.argv = [program, *map(str, words)]
    runpy.run_path(program, run_name="__main__")


def leave() -> NoReturn:
    """End the process without taking all libraries apart, which takes a third of a second, and longer on a GPU."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def circumstances(
    progress: Any, device: torch.device, started: float | None = None, versions: dict[str, str] | None = None
) -> dict[str, Any]:
    """Time, interruptions and machine. `started`: when the program was; `versions`: of further libraries."""
    import torch

    found = {"seconds": round(progress.seconds, 2)}
    if started is not None:
        found["seconds_in_all"] = round(time.monotonic() - started, 2)
    if progress.rehearsal:
        found["rehearsal"] = {name: round(value, 6) for name, value in progress.rehearsal.items()}
    if device.type == "cuda":
        found["gpu_memory"] = round(torch.cuda.max_memory_reserved(device) / 1e6)  # MB
    return {
        **found,
        "resumed": progress.resumed,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__, **(versions or {})},
    }


def named_files(pairs: list[str], option: str, name: Callable[[Path], str] | None = None) -> dict[str, list[Path]]:
    """The files of NAME=FILE pairs, or of files whose path tells the `name`; a name may have several files."""
    files: dict[str, list[Path]] = {}
    for pair in pairs:
        told, sign, file = pair.partition("=")
        if name and not sign:
            told, file = name(Path(pair)), pair
        if not (told and file):
            raise UserError(f"{option} {pair}: NAME=FILE was expected, such as fr=data/text/fr/train.txt")
        files.setdefault(told, []).append(Path(file))
    return files


def named_sets(pairs: list[str], option: str = "--sets", name: Callable[[Path], str] | None = None) -> dict[str, Path]:
    """The same where each name has one file."""
    files = named_files(pairs, option, name)
    for told, several in files.items():
        if len(several) > 1:
            raise UserError(f"{option} {told}={several[1]}: the name '{told}' is given twice")
    return {told: file for told, (file,) in files.items()}


def set_name(file: Path) -> str:
    """A prepared set as scores call it: trees/en_pud/test."""
    return "/".join(file.with_suffix("").parts[-3:])


def language_of(file: Path) -> str:
    """The language of a prepared text, the last part of the set's name; of a treebank the first."""
    name = file.parent.name
    return name.split("_")[0] if file.suffix == ".conllu" else name.rsplit("_", 1)[-1]
