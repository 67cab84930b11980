"""How many jobs share a GPU: by what the first job of their kind took of it when it was alone.

A job joins others if its memory fits and at least half of what it needs of the GPU and of the cores is left. So small
jobs fill a GPU together, and a job that keeps the GPU busy has it to itself.
"""

import json
import math
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crossalign.runtime.files import write_json

MOST = 48  # programs that MPS lets onto one GPU
GROWTH = 1.1  # the next job of a kind may need a little more memory than the one that was measured
SPARE = 0.95  # of the memory of a GPU is given away
SETTLED = 60.0  # seconds after which a long job has shown what it takes
FIELDS = "uuid,memory.total,memory.used,utilization.gpu,power.draw,power.limit"


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver describes it at one moment: MB, percent, watts. NaN is what it does not tell."""

    uuid: str
    total: float
    used: float
    busy: float
    power: float
    limit: float


def ask_driver(*question: str) -> str:
    """What nvidia-smi answers; nothing without a driver."""
    try:
        done = subprocess.run(["nvidia-smi", *question], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def look_at(name: str) -> Gpu | None:
    """A GPU now; None where the driver does not know its memory."""
    answer = ask_driver(f"--id={name}", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits").split(",")
    if len(answer) != len(FIELDS.split(",")):
        return None
    gpu = Gpu(answer[0].strip(), *map(_number, answer[1:]))
    return None if math.isnan(gpu.total + gpu.used) else gpu


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True)
class Use:
    """What a job takes when it is alone: MB at most, shares of the GPU's time and of its power, cores.

    `power` is counted from what the idle GPU draws; None where the driver does not tell.
    """

    memory: float
    busy: float
    power: float | None = None
    cores: float = 0.0

    def load(self, mps: bool) -> float:
        """Its share of the GPU.

        Without MPS jobs take turns: whoever runs a kernel has the whole GPU. With MPS kernels run side by side, and
        the power that a job draws tells how much of the GPU it fills.
        """
        return self.busy if self.power is None or not mps else self.power


@dataclass(frozen=True)
class Room:
    """What jobs may share: MB of the GPU that nobody else uses, the machine's cores, and whether MPS serves the GPU."""

    memory: float
    cores: float
    mps: bool


def obstacle(room: Room, present: Sequence[Use], new: Use, elsewhere: float = 0.0) -> str:
    """What keeps a job from joining those present, or nothing. `elsewhere` are cores in use for other GPUs."""
    together = [*present, new]
    if not present:
        return ""
    if GROWTH * sum(use.memory for use in together) > room.memory:
        return "memory"
    if sum(use.load(room.mps) for use in together) - new.load(room.mps) / 2 > 1:
        return "the GPU"
    if elsewhere + sum(use.cores for use in together) - new.cores / 2 > room.cores:
        return "cores"
    return "MPS" if len(together) > MOST else ""


def places(room: Room, use: Use) -> tuple[int, str]:
    """How many jobs of one kind share a GPU, and what keeps the next one out."""
    count = 1
    while not (why := obstacle(room, count * [use], use)):
        count += 1
    return count, why


def sentence(kind: str, room: Room, use: Use) -> str:
    """The decision for one kind of jobs, as people read it."""
    count, why = places(room, use)
    took = f"{use.memory / 1024:.1f} GB, {use.load(room.mps):.0%} of the GPU, {use.cores:.1f} cores"
    return f"{kind} takes {took}: {count} at a time{'' if room.mps else ' without MPS'} (the limit is {why})"


def job_kind(*words: str, model: Path | None = None) -> str:
    """Jobs that take about the same: one program, one task, models of about the same size."""
    if model is not None:
        size = sum(file.stat().st_size for file in model.glob("*.safetensors"))
        words = (*words, f"{1 << max(0, math.ceil(math.log2(max(size, 1) / 2**20)))}MB")
    return "-".join(words)


def read_use(folder: str | Path, kind: str) -> Use | None:
    """What a job of this kind took; None if none was measured."""
    try:
        found = json.loads((Path(folder) / f"{kind}.json").read_text(encoding="utf-8"))
        return Use(*(found[name] for name in ("memory", "busy", "power", "cores")))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def write_use(folder: str | Path, kind: str, use: Use) -> None:
    """Note what a job took. The most memory that any has needed stays."""
    if known := read_use(folder, kind):
        use = Use(max(use.memory, known.memory), use.busy, use.power, use.cores)
    write_json(Path(folder) / f"{kind}.json", asdict(use))


def outlook(folder: str | Path, names: Sequence[str], cores: float, mps: bool) -> str:
    """One line at the start of a run: how its jobs will share the GPUs. Nothing where there are none."""
    gpus = [gpu for name in names if (gpu := look_at(name))]
    if not gpus:
        return ""
    room = Room(SPARE * min(gpu.total - gpu.used for gpu in gpus), cores, mps)
    known = {file.stem: read_use(folder, file.stem) for file in sorted(Path(folder).glob("*.json"))}
    counts = ", ".join(f"{kind} {places(room, use)[0]}" for kind, use in known.items() if use)
    how = f"at a time on each: {counts}; others are" if counts else "each kind of job is"
    served = "with MPS" if mps else f"without MPS (no {MPS_CONTROL})"
    many = f"{len(gpus)} GPU{'s' * (len(gpus) > 1)} of {min(gpu.total for gpu in gpus) / 1024:.0f} GB"
    return f"{many}, shared {served}; {how} measured first ({folder})"


MPS_CONTROL = "nvidia-cuda-mps-control"


def mps_installed() -> bool:
    """Whether MPS can be started here, and nobody has switched it off."""
    return os.environ.get("CROSSALIGN_GPU_MPS") != "off" and shutil.which(MPS_CONTROL) is not None


class Watch:
    """Looks at a GPU while a job has it to itself; after `SETTLED` seconds calls `then` and looks no more."""

    def __init__(self, name: str, pause: float = 0.5, then: Callable[[Use], None] | None = None) -> None:
        self.name, self.pause, self.then = name, pause, then
        self.samples: list[Gpu] = []
        self.over = threading.Event()
        self.began, self.spent = time.monotonic(), time.process_time()
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watch":
        self.watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.watcher.join()

    def _watch(self) -> None:
        while True:
            if gpu := look_at(self.name):
                self.samples.append(gpu)
            if self.over.wait(self.pause):
                return
            if self.then and time.monotonic() - self.began > SETTLED and (use := self.use()):
                self.then(use)
                return

    def mean(self, field: str) -> float:
        """The mean of what the driver told; NaN if it told nothing."""
        values = [value for gpu in self.samples if not math.isnan(value := getattr(gpu, field))]
        return sum(values) / len(values) if values else math.nan

    @property
    def peak(self) -> float:
        """The most memory in use, in MB."""
        return max((gpu.used for gpu in self.samples), default=0.0)

    def use(self) -> Use | None:
        """What the job has taken so far; None if the driver did not tell enough."""
        if len(self.samples) < 2 or math.isnan(busy := self.mean("busy")):
            return None
        first = self.samples[0]
        power = (self.mean("power") - first.power) / (first.limit - first.power) if first.limit > first.power else None
        cores = (time.process_time() - self.spent) / (time.monotonic() - self.began)
        power = None if power is None or math.isnan(power) else round(min(max(power, 0.0), 1.0), 3)
        return Use(self.peak - first.used, round(busy / 100, 3), power, round(cores, 2))
