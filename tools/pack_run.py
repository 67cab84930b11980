"""Pack code, packages and data for a machine without a network that has torch, into parts of a limited size.

Out: part-001, part-002 …, their SHA256SUMS and unpack.sh. On the other machine `bash unpack.sh FOLDER` checks, joins
and unpacks them; make works there without installing anything. Packages come in the versions of this environment, as
wheels for the other machine's Python and processor. Code is what is committed.

Example:
    python tools/pack_run.py --out packed --python 3.12 --platform x86_64 --have torch numpy --paths resources/sizes.tsv
"""

import hashlib
import io
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.runtime.errors import UserError, run_main

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ".venv/packages"  # beside the environment that unpack.sh makes
# What no program reads: tests, headers and sources of compiled modules, types.
USELESS = re.compile(r"(^|/)tests?/|^pyarrow/(include|src)/|\.(pyx|pxd|pyi|h|hpp|cc)$")
# PuLP brings its solver for six kinds of machines, 40 MB in all.
SOLVERS = {"x86_64": "linux/i64", "aarch64": "linux/arm64"}


def parse_args() -> Namespace:
    """The command line."""
    args = ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=RawDescriptionHelpFormatter,
        epilog=__doc__[__doc__.find("Example:") :],
    )
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    args.add_argument("--out", type=Path, required=True, help="the folder of parts, replaced when this runs again")
    args.add_argument("--python", default=here, help="the other machine's Python (default: this one's, %(default)s)")
    args.add_argument("--platform", choices=sorted(SOLVERS), default=platform.machine(), help="its processor")
    args.add_argument("--glibc", default="2.28", help="its C library, or an older one (default: %(default)s)")
    args.add_argument(
        "--have", nargs="*", default=[], help="packages left out, with what only they need; torch always is"
    )
    args.add_argument("--paths", nargs="*", type=Path, default=[], help="files and folders of the project to add")
    args.add_argument("--part", type=float, default=60, help="the most MiB of a part (default: %(default)s)")
    return args.parse_args()


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement(line: str) -> tuple[str, set[str], str]:
    """Name, extras and marker of a requirement."""
    found = re.match(r"\s*([\w.-]+)\s*(?:\[([^]]*)\])?[^;]*;?(.*)", line)
    if not found:
        raise UserError(f"not a requirement: {line}")
    return normal(found[1]), {normal(extra) for extra in re.findall(r"[\w.-]+", found[2] or "")}, found[3]


def closure(requirements: Iterable[str], have: Iterable[str]) -> dict[str, str]:
    """All packages that are needed beside those that the machine has, with their versions here.

    Markers of machine and Python are not judged: what is installed here is what its markers have let in.
    """
    skipped = {normal(name) for name in have}
    versions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [requirement(line) for line in requirements]
    while waiting:
        name, extras, _ = waiting.pop()
        new = {(name, extra) for extra in ("", *extras)} - seen
        if name in skipped or not new:
            continue
        seen |= new
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        for line in metadata.requires(name) or []:
            further = requirement(line)
            asked = {normal(extra) for extra in re.findall(r"extra\s*==\s*['\"]([^'\"]+)", further[2])}
            if not asked or asked & extras:
                waiting.append(further)
    return versions


def modules(names: Iterable[str]) -> list[str]:
    """What programs import of the packages: the module of the same name, else all that do not begin with _."""
    provided: dict[str, set[str]] = {}
    for module, owners in metadata.packages_distributions().items():
        for owner in owners:
            provided.setdefault(normal(owner), set()).add(module)
    found = set()
    for name in names:
        have = provided.get(name, set())
        same = {module for module in have if normal(module) == name}
        found |= same or {module for module in have if module.isidentifier() and not module.startswith("_")}
    return sorted(found)


def pip(*words: str | Path) -> subprocess.CompletedProcess:
    """Run pip of this Python."""
    return subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)


def platforms(machine: str, glibc: str) -> list[str]:
    """The platforms whose wheels run there. pip takes each name literally: a newer one does not stand for the older."""
    newest = int(glibc.split(".")[1])
    names = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, 4, -1)]
    names += [f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")]
    return [word for name in (*names, f"linux_{machine}") for word in ("--platform", name)]


def download(versions: Mapping[str, str], args: Namespace, place: Path) -> list[str]:
    """Fetch the wheels for the other machine, or build them here if they hold only Python; names what has neither."""
    wanted, without = dict(versions), []
    target = ("--only-binary=:all:", "--python-version", args.python, *platforms(args.platform, args.glibc))
    while wanted:
        listed = [f"{name}=={version}" for name, version in wanted.items()]
        done = pip("download", "--quiet", "--no-deps", "--dest", place, *target, *listed)
        if done.returncode == 0:
            break
        absent = re.search(r"No matching distribution found for ([\w.-]+)==", done.stderr)
        if not absent:
            raise UserError(f"pip could not fetch the packages: {done.stderr.strip()[-1000:]}")
        name = normal(absent[1])
        del wanted[name]
        with tempfile.TemporaryDirectory() as built:
            pip("wheel", "--quiet", "--no-deps", "--wheel-dir", built, f"{name}=={versions[name]}")
            pure = list(Path(built).glob("*-none-any.whl"))
            if pure:
                shutil.move(pure[0], place)
            else:
                without.append(name)
    return without


class Parts:
    """A stream that is cut into files of a limited size."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self.sums: list[str] = []
        self.kept = bytearray()

    def write(self, data: bytes) -> int:
        """Add to the part that is being filled."""
        self.kept += data
        while len(self.kept) >= self.limit:
            self._cut()
        return len(data)

    def close(self) -> None:
        """Write the last part, and last of all the sums."""
        if self.kept:
            self._cut()
        (self.folder / "SHA256SUMS").write_text("".join(self.sums), encoding="utf-8")

    def _cut(self) -> None:
        name, data = f"part-{len(self.sums) + 1:03}", self.kept[: self.limit]
        (self.folder / name).write_bytes(data)
        self.sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
        del self.kept[: self.limit]


def add_code(archive: tarfile.TarFile) -> None:
    """Everything that is committed."""
    made = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(made.stdout), mode="r:") as code:
        for member in code:
            archive.addfile(member, code.extractfile(member) if member.isfile() else None)


def add_wheel(archive: tarfile.TarFile, wheel: Path, machine: str) -> None:
    """The modules of a wheel, unpacked."""
    with ZipFile(wheel) as files:
        for file in files.infolist():
            name = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", file.filename)
            if file.is_dir() or USELESS.search(name) or re.match(r"[^/]+\.data/", name):
                continue
            if name.startswith("pulp/solverdir/cbc/") and f"/{SOLVERS[machine]}/" not in name:
                continue
            member = tarfile.TarInfo(f"{PACKAGES}/{name}")
            member.size = file.file_size
            member.mode = 0o755 if file.external_attr >> 16 & 0o111 else 0o644
            with files.open(file) as data:
                archive.addfile(member, data)


def prepare(args: Namespace, needed: Iterable[str]) -> None:
    """The folder of parts with its unpack.sh. Only a folder that this program wrote is written to again."""
    unpack = args.out / "unpack.sh"
    if args.out.exists() and any(args.out.iterdir()) and not unpack.exists():
        raise UserError(f"--out {args.out}: there is a folder that this program did not write; name another")
    args.out.mkdir(parents=True, exist_ok=True)
    for old in (*args.out.glob("part-*"), *args.out.glob("SHA256SUMS")):
        old.unlink()
    text = (ROOT / "tools/unpack_run.sh").read_text(encoding="utf-8")
    for word, value in (("@PYTHON@", args.python), ("@MACHINE@", args.platform), ("@NEEDED@", " ".join(needed))):
        text = text.replace(word, value)
    unpack.write_text(text, encoding="utf-8")


def main() -> None:
    """Fetch packages, then write everything as one stream."""
    args = parse_args()
    # Not resolved: a link into another disk is part of the project, too.
    paths = [Path(os.path.normpath(ROOT / path)) for path in args.paths]
    for path, named in zip(paths, args.paths, strict=True):
        if not path.exists() or not path.is_relative_to(ROOT):
            raise UserError(f"--paths {named}: there is no such file or folder in the project")
    if not re.fullmatch(r"3\.\d+", args.python) or not re.fullmatch(r"2\.\d+", args.glibc):
        raise UserError(f"--python {args.python} --glibc {args.glibc}: versions look like 3.12 and 2.28")
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    if changed.returncode != 0:
        raise UserError(f"the code is packed as it is committed: {changed.stderr.strip()}")
    if changed.stdout:
        print("note: what is not committed is not packed, unless --paths names it:", changed.stdout, sep="\n")
    lines = [line.partition("#")[0].strip() for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines()]
    lines = [line for line in lines if line]
    versions = closure(lines, [*args.have, "torch"])
    prepare(args, modules(requirement(line)[0] for line in lines))
    with tempfile.TemporaryDirectory() as place:
        print(f"{len(versions)} packages for Python {args.python} on {args.platform} …", flush=True)
        for name in download(versions, args, Path(place)):
            print(f"note: {name} {versions[name]} has no wheel for that machine, which must have it", flush=True)
        parts = Parts(args.out, max(1, int(args.part * 2**20)))
        # Links may lead out of the project: what they lead to is packed.
        with lzma.LZMAFile(parts, "w") as packed, tarfile.open(fileobj=packed, mode="w|", dereference=True) as archive:
            add_code(archive)
            for wheel in sorted(Path(place).glob("*.whl")):
                add_wheel(archive, wheel, args.platform)
            for path in paths:
                archive.add(path, path.relative_to(ROOT))
        parts.close()
    size = sum(file.stat().st_size for file in args.out.glob("part-*"))
    print(f"{args.out}: {len(parts.sums)} parts, {size / 2**20:.1f} MiB; on the other machine: bash unpack.sh FOLDER")


if __name__ == "__main__":
    run_main(main)
