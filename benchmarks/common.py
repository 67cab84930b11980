"""What the benchmarks share: paths, files, clocks, the cost of a command, tables."""

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Behind this folder: some programs in scripts/ have the names of benchmarks.
sys.path.insert(1, str(ROOT / "scripts"))


def new_parser(text: str) -> argparse.ArgumentParser:
    """A command line that explains itself with the text of its module."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def shared_folder() -> Path:
    """The folder of real text that the tests use too."""
    return Path(os.environ.get("CROSSALIGN_SHARED", ROOT.parent / "shared"))


def find(folder: Path, pattern: str) -> Path:
    """The only file below `folder` that matches."""
    found = sorted(folder.rglob(pattern))
    if len(found) != 1:
        names = ", ".join(map(str, found)) or "none"
        raise SystemExit(f"error: one {pattern} was expected below {folder}; found: {names}")
    return found[0]


def text_of(path: Path) -> str:
    """A text file, compressed or not; its ends of lines are kept."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="\n") as stream:
        return stream.read()


def write_results(path: Path | None, results: Any) -> None:
    """The numbers as JSON, where somebody asked for them."""
    if path:
        path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


@dataclass
class Cost:
    """What a command took: seconds by the clock and of all cores together, and peak memory in megabytes."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.peak, other.peak))

    def columns(self) -> list[str]:
        """For a table."""
        return [f"{self.wall:.1f}", f"{self.cpu:.1f}", f"{self.peak:.0f}"]


def cost_of(command: list[str], out: Path, environment: dict[str, str], errors: int = subprocess.STDOUT) -> Cost:
    """Run a command with its output in a file; where it fails, the last of that file is the message."""
    began = time.perf_counter()
    with out.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=errors, env=environment)
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        raise
    # Popen must not wait for a process that is gone.
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        said = out.read_text(encoding="utf-8", errors="replace")[-5000:]
        raise SystemExit(f"{said}\nerror: {' '.join(command)} ended with status {process.returncode}")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def own_process(*arguments: Any) -> dict[str, float]:
    """What this program prints last when it is called with these arguments; its peak memory is then its own."""
    command = [sys.executable, sys.argv[0], *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command[2:])} failed")
    return json.loads(done.stdout.splitlines()[-1])


def print_row(row: list[str]) -> None:
    """One row of a Markdown table, at once: rows of a long measurement are worth reading while it lasts."""
    print("| " + " | ".join(map(str, row)) + " |", flush=True)


def print_table(header: list[str], rows: list[list[str]] = ()) -> None:
    """A Markdown table, or the head of one whose rows follow."""
    for row in (header, ["---"] * len(header), *rows):
        print_row(row)


def now(device) -> float:
    """Wall clock of the GPU's work; on the CPU seconds of this process, which neighbours disturb less."""
    if device.type == "cpu":
        return time.process_time()
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def device_name(device) -> str:
    """The GPU's own name, or cpu."""
    import torch

    return torch.cuda.get_device_name() if device.type == "cuda" else "cpu"


def attempt(label: str, work: Callable, *args: Any) -> Any:
    """Run one measurement and print its result; an error is printed and the others go on."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        result = work(*args)
    except Exception:
        print(f"{label}: failed\n{traceback.format_exc()}", flush=True)
        return None
    print(f"{label}: {json.dumps(result, default=str)}", flush=True)
    return result


def kernels(step: Callable[[int], None], device, steps: int = 3, most: int = 40) -> list[str]:
    """A table of what `steps` calls of `step(number)` spend their time on, longest first; on a CPU its operators."""
    from torch.profiler import ProfilerActivity, profile

    cuda = device.type == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU]) as found:
        began = now(device)
        for number in range(steps):
            step(number)
        wall = 1000 * (now(device) - began) / steps
    # With CUDA alone the list also holds what the host did, which has no time on the device.
    spent = {
        event.key: ((event.self_device_time_total if cuda else event.self_cpu_time_total) / 1000 / steps, event.count)
        for event in found.key_averages()
    }
    spent = {name: row for name, row in spent.items() if row[0] > 0}
    total = sum(took for took, _ in spent.values())
    lines = [
        f"a step under the profiler: {wall:.1f} ms; its {len(spent)} kinds of kernels together: {total:.1f} ms "
        "(more than the step where two streams run beside each other)",
        "| ms per step | share, % | times | kernel |",
        "|---|---|---|---|",
    ]
    for name, (took, times) in sorted(spent.items(), key=lambda item: -item[1][0])[:most]:
        name = name.replace("|", "/").replace("void ", "").replace("at::native::", "")
        # Templates make kernels' names very long; their beginning and their end tell most.
        name = name if len(name) <= 110 else f"{name[:67]} … {name[-40:]}"
        lines.append(f"| {took:.2f} | {100 * took / total:.1f} | {times / steps:.0f} | {name} |")
    return lines
