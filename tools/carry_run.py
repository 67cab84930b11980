"""Carry a run between machines that never meet, such as a GPU available in short slots.

send: what the jobs behind some targets still have to read, as far as it is there, and targets that are done. return:
what was made since the last `receive` or `return`, weights only where jobs that read them are left. Both write
part-001, part-002 …, their SHA256SUMS and a list of their files; receive unpacks such a folder into this project, where
Snakemake then continues with what is left. The code is not among it: tools/pack_run.py packs that.
docs/use/small-run.md has the whole way.

Example:
    python tools/carry_run.py send --configs config/small.yaml --targets pretrained --to there
"""

import bz2
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.catalog.config import load
from crossalign.catalog.sheets import Sheets
from crossalign.papers.all_items import catalog_of
from crossalign.plan.costs import ENDS
from crossalign.plan.dag import planned
from crossalign.plan.jobs import Graph
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import read_json, sha256, write_json
from crossalign.runtime.workarounds import LOCKS

# bzip2 packs text as well as xz does and weights in bf16 better, in a tenth of the time; blocks of this size are
# compressed each for itself anyway, so that all cores can work on them.
BLOCK = 900_000
NOTES = LOCKS.parent
# Large, and nothing once the jobs that read them are done.
WEIGHTS = "model.safetensors"
LARGE = {WEIGHTS, "predictions.jsonl.gz"}
# Beside what jobs make: what they took, by which the plan and the sharing of a GPU go, and what they said.
ACCOUNTS = ("benchmarks", "gpus", "logs")
FILES = "files.txt"
# Snakemake goes by times, and clocks differ. What is sent gets one time long ago, whichever folder it comes in: nothing
# of it is newer than what was made from it, and all that is made there is newer still. What returns gets the time at
# which it is received, as it was made from what has been here before. When jobs ended, which benchmark files tell by
# their times, is kept beside these.
SENT, RETURNED = 946684800, 0
# Goes along: what stays where the parts come from, or was there until its last use, and by which settings it was made.
# Made again by the same ones it is not returned: what was made from it before would count as older than its input.
ELSEWHERE = "elsewhere.json"
# Made by a job, and never carried: what is deleted after its last use, and what was fetched.
PASSING = re.compile(r"embeddings/|downloads/|tuned/.+/model/")


def parse_args() -> Namespace:
    """The command line."""
    parser = ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=RawDescriptionHelpFormatter,
        epilog=__doc__[__doc__.find("send:") :],
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("send", "return"):
        command = commands.add_parser(name)
        command.add_argument("--configs", type=Path, nargs="+", required=True, help="files merged over config.yaml")
        command.add_argument(
            "--to", type=Path, required=True, help="the folder of parts, replaced when this runs again"
        )
        command.add_argument("--part", type=float, default=60, help="the most MiB of a part (default: %(default)s)")
        if name == "return":
            command.add_argument(
                "--hold-models",
                action="store_true",
                help="adapted models stay, as they are large; what was made from one returns when all of it is done",
            )
        else:
            command.add_argument("--targets", nargs="+", default=["all"], help="as for snakemake (default: all)")
            command.add_argument(
                "--after", type=Path, nargs="+", default=[], help="folders sent before: their files do not go again"
            )
    receive = commands.add_parser("receive")
    receive.add_argument("--from", type=Path, required=True, dest="source", help="the folder of parts")
    return parser.parse_args()


def record(kind: str, file: str) -> Path:
    """Where Snakemake notes something of a file: its metadata, or that the job that makes it has not ended."""
    name = urlsafe_b64encode(file.encode()).decode()
    # No longer than a file's name may be.
    *folders, last = re.findall(".{1,254}", name)
    return Path(NOTES, kind, *(f"@{folder}" for folder in folders), last)


def to_send(graph: Graph, results: Path) -> Iterator[str]:
    """What the jobs that are left read and no other of them makes, with all that was made together with it.

    And targets that are there already, else they would be made again, with everything before them; tables and figures
    with what they show, as their code may be another since.
    """
    left = graph.left
    shown = {name for file in graph.targets if graph.jobs[name := graph.maker[file]].rule.startswith("make_")}
    read = {file for name in left | shown for file in graph.jobs[name].reads}.union(graph.targets)
    makers = {graph.maker[file] for file in read if file in graph.maker} - left
    for name in makers:
        fetched = graph.jobs[name].rule.startswith("download_")
        yield from (file for file in graph.jobs[name].outputs if file in read or not fetched and carried(file, results))
    # A mirror of samples says by this file what its files have to be.
    yield from (str(file) for file in [results / "mirror" / "SHA256SUMS"] if file.exists())


def carried(file: str, results: Path) -> bool:
    """Whether an output may go along with others of its job."""
    path = Path(file)
    return path.name not in LARGE and not PASSING.match(str(path.relative_to(results)))


def users(graph: Graph, file: str) -> list[str]:
    """The jobs that read a file."""
    return [name for name in graph.dependants[graph.maker[file]] if file in graph.jobs[name].reads]


def done_jobs(graph: Graph, elsewhere: Collection[str] = ()) -> set[str]:
    """The jobs whose outputs are here or elsewhere, or have had their last use."""

    @cache
    def done(name: str) -> bool:
        return all(file in elsewhere or Path(file).exists() or used(file) for file in graph.jobs[name].outputs)

    def used(file: str) -> bool:
        """Whether a missing file has had its last use; others of its job may yet have theirs."""
        readers = users(graph, file)
        # A large one that nobody reads was not carried.
        return bool(readers or Path(file).name in LARGE) and all(map(done, readers))

    return set(filter(done, graph.jobs))


def present(graph: Graph) -> dict[str, str]:
    """The outputs that are here, and those of finished jobs that are not any more, with their settings."""
    done = done_jobs(graph)
    files = (file for name, job in graph.jobs.items() for file in job.outputs if name in done or Path(file).exists())
    return {file: settings(file) for file in files}


def settings(file: str) -> str:
    """A hash of the settings and the code by which a file was made, as far as Snakemake has noted them."""
    note = read_json(record("metadata", file)) or {}
    return hashlib.sha256(str(note["params"]).encode()).hexdigest() if note.get("params") else ""


def to_return(graph: Graph, results: Path, new: Callable[[str], bool], hold: bool = False) -> tuple[set[str], set[str]]:
    """The new outputs of jobs that have ended, the large ones as long as somebody has to read them, and the accounts.

    Also those that have to wait. If models are held, neither an adapted model that somebody has yet to read returns nor
    what was made from it: where such a model is missing it is made again, and with it everything that depends on it.
    Benchmark files wait with the outputs of their jobs: to Snakemake a job whose benchmark file is older than what it
    reads is out of date.
    """
    elsewhere = read_json(results / ELSEWHERE) or {}
    done = done_jobs(graph, elsewhere)

    def again(file: str) -> bool:
        """Whether a file is elsewhere as it is here; without notes Snakemake takes settings for the same, too."""
        return file in elsewhere and elsewhere[file] in ("", settings(file))

    def wanted(file: str) -> bool:
        return not done.issuperset(users(graph, file))

    made: dict[str, list[str]] = {}
    for name, job in graph.jobs.items():
        if not any(record("incomplete", file).exists() for file in job.outputs):
            there = (file for file in job.outputs if Path(file).is_relative_to(results) and Path(file).is_file())
            kept = (file for file in there if not PASSING.match(str(Path(file).relative_to(results))))
            fresh = (file for file in kept if new(file) and not again(file))
            made[name] = [file for file in fresh if Path(file).name not in LARGE or wanted(file)]
    held: set[str] = set()
    following = [name for name, files in made.items() if hold and is_adapted_model(graph.jobs[name].rule, files)]
    while following:
        held.add(name := following.pop())
        following += (after for after in graph.dependants[name] if after not in held)
    timed = {str(results / "benchmarks" / graph.jobs[name].benchmark) for name in held}
    found = {file for name in made.keys() - held for file in made[name]}
    found.update(file for file in accounts(results, ACCOUNTS) if file not in timed and new(file))
    return found, {file for name in held for file in made.get(name, ())}


def is_adapted_model(rule: str, files: Iterable[str]) -> bool:
    """Whether these outputs are the weights of a model, which is no base model: those take too long to make again."""
    return rule != "pretrain" and any(Path(file).name == WEIGHTS for file in files)


def accounts(results: Path, names: Iterable[str]) -> Iterator[str]:
    """The files that say what jobs took and told."""
    return (str(file) for name in names for file in (results / name).rglob("*") if file.name != ENDS)


def jobs_behind(sheets: Sheets, configs: Iterable[Path], targets: Iterable[str] = ("all",)) -> Graph:
    """The jobs behind some targets."""
    return planned(configs, [file for target in targets for file in sheets.target(target)], Path())


class Parts:
    """A stream that is compressed on all cores and cut into files of a limited size, each readable by itself."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, int(limit * 2**20)
        self.block = min(BLOCK, self.limit // 2)
        self.waiting, self.full, self.sums = bytearray(), bytearray(), []
        self.threads = ThreadPoolExecutor(os.cpu_count())
        self.bytes = 0

    def write(self, data: bytes) -> int:
        """Take the next bytes of the stream."""
        self.waiting += data
        # As many blocks at a time as keep all cores busy and memory small.
        if len(self.waiting) >= 64 * self.block:
            whole = len(self.waiting) // self.block * self.block
            self._compress(self.waiting[:whole])
            del self.waiting[:whole]
        return len(data)

    def close(self) -> None:
        """Write what is left, and last of all the sums."""
        self._compress(self.waiting)
        self._cut()
        self.threads.shutdown()
        (self.folder / "SHA256SUMS").write_text("".join(self.sums), encoding="utf-8")

    def _compress(self, data: bytearray) -> None:
        blocks = [bytes(data[start : start + self.block]) for start in range(0, len(data), self.block)]
        for packed in self.threads.map(bz2.compress, blocks):
            if len(self.full) + len(packed) > self.limit:
                self._cut()
            self.full += packed

    def _cut(self) -> None:
        name = f"part-{len(self.sums) + 1:03}"
        (self.folder / name).write_bytes(self.full)
        self.sums.append(f"{hashlib.sha256(self.full).hexdigest()}  {name}\n")
        self.bytes += len(self.full)
        self.full.clear()


class Joined(io.RawIOBase):
    """The stream that parts were cut from; those ahead are unpacked meanwhile."""

    def __init__(self, parts: Iterable[Path]) -> None:
        self.threads = ThreadPoolExecutor(os.cpu_count())
        self.ahead = self.threads.map(lambda part: bz2.decompress(part.read_bytes()), parts)
        self.rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray) -> int:
        while not self.rest:
            following = next(self.ahead, None)
            if following is None:
                return 0
            self.rest = memoryview(following)
        size = min(len(target), len(self.rest))
        target[:size], self.rest = self.rest[:size], self.rest[size:]
        return size


def sent(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A file of long ago."""
    member.mtime = SENT
    return member


def returned(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A file that is new wherever it comes."""
    if not is_benchmark(Path(member.name)):
        member.mtime = RETURNED
    return member


def is_benchmark(path: Path) -> bool:
    """Whether a file says what a job took."""
    return path.parts[2:3] == ("benchmarks",) and path.suffix == ".tsv"


def pack(args: Namespace) -> None:
    """Write the parts of what is to be sent or returned."""
    sheets = Sheets(catalog_of(load(args.configs)))
    results = Path(sheets.results)
    targets = args.targets if args.command == "send" else ["all"]
    graph = jobs_behind(sheets, args.configs, targets)
    note = results / "carried.json"
    known = read_json(note) or {}
    # Jobs go on meanwhile: what is written after this moment belongs to the next time.
    times: dict[str, int] = {}

    def new(file: str) -> bool:
        times[file] = Path(file).stat().st_mtime_ns
        return known.get(file) != times[file]

    elsewhere, waiting = b"", set()
    if args.command == "send":
        found = {*to_send(graph, results), *accounts(results, ["gpus"])}
        stays = {file: how for file, how in present(jobs_behind(sheets, args.configs)).items() if file not in found}
        elsewhere = json.dumps(stays, sort_keys=True).encode()
        found -= {file for folder in args.after for file in (folder / FILES).read_text("utf-8").splitlines()}
    else:
        found, waiting = to_return(graph, results, new, args.hold_models)
    files = sorted(file for file in found if Path(file).is_file() and Path(file).is_relative_to("results"))
    records = [str(path) for file in files if (path := record("metadata", file)).exists()]
    if args.to.exists() and any(
        not re.fullmatch(rf"part-\d+|SHA256SUMS|{FILES}", file.name) for file in args.to.iterdir()
    ):
        raise UserError(f"--to {args.to}: there is a folder that this program did not write; name another")
    args.to.mkdir(parents=True, exist_ok=True)
    for old in args.to.iterdir():
        old.unlink()
    parts = Parts(args.to, args.part)
    with tarfile.open(fileobj=parts, mode="w|", dereference=True) as archive:
        for file in (*files, *records):
            archive.add(file, filter=sent if args.command == "send" else returned)
        if elsewhere:
            member = tarfile.TarInfo(str(results / ELSEWHERE))
            member.size, member.mtime = len(elsewhere), SENT
            archive.addfile(member, io.BytesIO(elsewhere))
    parts.close()
    (args.to / FILES).write_text("".join(f"{file}\n" for file in files), encoding="utf-8")
    if args.command == "return":
        add_to(note, {file: times[file] for file in files})
    print(f"{args.to}: {len(files)} files, {len(parts.sums)} parts, {parts.bytes / 2**20:.1f} MiB")
    if waiting:
        print(f"{len(waiting)} more wait: they are adapted models that are read again, or were made from one")


def receive(source: Path) -> None:
    """Unpack parts into this project, once all are there and whole."""
    sums = source / "SHA256SUMS"
    if not sums.is_file():
        raise UserError(f"--from {source}: there is no SHA256SUMS")
    listed = dict(reversed(line.split()) for line in sums.read_text(encoding="utf-8").splitlines())
    parts = {name: source / name for name in listed}
    if missing := [name for name, part in parts.items() if not part.is_file()]:
        raise UserError(f"--from {source}: missing are {' '.join(missing)}")
    if damaged := [name for name, part in parts.items() if sha256(part) != listed[name]]:
        raise UserError(f"--from {source}: damaged, or of another time, are {' '.join(damaged)}; copy them again")
    now = time.time_ns()
    carried: dict[str, dict[str, int]] = {}
    ends: dict[Path, dict[str, tuple[int, float]]] = {}
    with tarfile.open(fileobj=io.BufferedReader(Joined(parts.values())), mode="r|") as archive:
        for member in archive:
            path = Path(member.name)
            if not member.isfile() or ".." in path.parts or path.parts[0] not in ("results", NOTES.name):
                raise UserError(f"--from {source}: {member.name} is no file of a run")
            path.parent.mkdir(parents=True, exist_ok=True)
            # Not written through a link to a file elsewhere.
            path.unlink(missing_ok=True)
            archive.extract(member, filter="data")
            moment = SENT * 10**9 if member.mtime == SENT else now
            os.utime(path, ns=(moment, moment))
            if is_benchmark(path) and member.mtime not in (SENT, RETURNED):
                folder = Path(*path.parts[:3])
                ends.setdefault(folder, {})[str(path.relative_to(folder))] = (path.stat().st_mtime_ns, member.mtime)
            if path.parts[0] == "results":
                carried.setdefault(path.parts[1], {})[member.name] = moment
    for run, files in carried.items():
        add_to(Path("results", run, "carried.json"), files)
    for folder, times in ends.items():
        add_to(folder / ENDS, times)
    print(f"received {sum(map(len, carried.values()))} files of {', '.join(sorted(carried)) or 'no run'}")


def add_to(file: Path, found: Mapping) -> None:
    """Add entries to a file of them."""
    write_json(file, (read_json(file) or {}) | found)


def main() -> None:
    """Pack or unpack, in the working folder."""
    args = parse_args()
    if args.command == "receive":
        receive(args.source)
    else:
        pack(args)


if __name__ == "__main__":
    run_main(main)
