"""A run that is carried to a machine without a network: packed here from an index of toy wheels, unpacked elsewhere."""

import base64
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="wheels are chosen for Linux"
)
HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
FOREIGN = {"x86_64": "aarch64", "aarch64": "x86_64"}[platform.machine()] if sys.platform == "linux" else ""
# A build backend inside a source archive, so that building needs no index: it packs the wheel that it carries.
BACKEND = """
import shutil
def build_wheel(folder, settings=None, metadata=None):
    return shutil.copy("seed-1.0-py3-none-any.whl", folder).rpartition("/")[2]
"""


def wheel(folder, name, tag="py3-none-any", requires=(), files=None, whose="packed"):
    """A wheel of one module that says whose it is."""
    info = f"{name}-1.0.dist-info"
    texts = {f"{name}/__init__.py": f"WHOSE = {whose!r}\n", **(files or {})}
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {each}" for each in requires)]
    texts[f"{info}/METADATA"] = "\n".join(lines) + "\n"
    texts[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
    record = ""
    for path, text in texts.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    texts[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    file = folder / f"{name}-1.0-{tag}.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in texts.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o755 if path.endswith("/tool") else 0o644) << 16
            archive.writestr(entry, text)
    return file


def install(file, folder):
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)


def run(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def world(root, tmp_path_factory):
    """A project under git, an index, the environment that it runs in here, and another machine's Python with torch."""
    place = tmp_path_factory.mktemp("pack")
    index, site, project, machine = (place / name for name in ("index", "site", "project", "machine"))
    for folder in (index, site, project / "tools", project / "results/data"):
        folder.mkdir(parents=True)
    native = f"{HERE}-{HERE}-manylinux_2_17_{platform.machine()}"
    further = {"leaf/tests/test_leaf.py": "", "leaf/tool": "#!/bin/sh\n", "leaf-1.0.data/scripts/leaf": "#!python\n"}
    files = [
        wheel(index, "trunk", requires=["leaf[fast]>=1", "shade", "torch", "absent; sys_platform == 'win32'"]),
        wheel(
            index, "leaf", native, ["twig ; extra == 'fast'", "stone ; extra == 'slow'"], further
        ),
        *(wheel(index, name) for name in ("twig", "shade", "stone")),
    ]  # fmt: skip
    source = wheel(place, "seed")
    with tarfile.open(index / "seed-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, f"seed-1.0/{source.name}")
        build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        for name, text in (("pyproject.toml", build), ("backend.py", BACKEND), ("PKG-INFO", "Name: seed\n")):
            member = tarfile.TarInfo(f"seed-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    here_only = [wheel(place, "torch", requires=["triton"]), wheel(place, "triton")]
    foreign = wheel(index, "compiled", f"{HERE}-{HERE}-manylinux_2_17_{FOREIGN}")
    for file in (*files, source, *here_only, foreign):
        install(file, site)

    (project / "requirements.txt").write_text("# what it needs\ntrunk==1.0\nseed==1.0 # built\ntorch==1.0\n")
    for name in ("pack_run.py", "unpack_run.sh"):
        shutil.copy(root / "tools" / name, project / "tools")
    (project / ".gitignore").write_text("results\n")
    (project / "results/data/noise").write_bytes(os.urandom(3000))
    (place / "outside.txt").write_text("linked")
    (project / "results/data/link").symlink_to(place / "outside.txt")
    git = ["git", "-C", project, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        assert run([*git, *words]).returncode == 0

    assert run([sys.executable, "-m", "venv", "--without-pip", machine]).returncode == 0
    theirs = next(machine.glob("lib/python3*/site-packages"))
    for name in ("torch", "shade"):
        (place / "theirs").mkdir(exist_ok=True)
        install(wheel(place / "theirs", name, whose="machine"), theirs)
    env = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}
    env |= {"PYTHONPATH": f"{site}{os.pathsep}{root / 'scripts'}"}
    return SimpleNamespace(place=place, project=project, env=env, python=machine / "bin/python")


def pack(world, out, *words):
    command = [sys.executable, world.project / "tools/pack_run.py", "--out", out, *words]
    return run(command, env=world.env)


def unpack(world, packed, to):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return run(["bash", packed / "unpack.sh", to], env=env | {"PYTHON": str(world.python)})


@pytest.fixture(scope="module")
def packed(world):
    """Some parts of at most one KiB."""
    out = world.place / "packed"
    done = pack(world, out, "--paths", "results/data", "--part", "0.001")
    assert done.returncode == 0, done.stderr
    assert "note:" not in done.stdout
    return out


def test_code_data_and_packages_arrive_and_the_machines_own_packages_come_first(world, packed, tmp_path):
    parts = sorted(packed.glob("part-*"))
    assert len(parts) > 3 and all(part.stat().st_size <= 1048 for part in parts)
    done = unpack(world, packed, tmp_path / "to here")
    assert done.returncode == 0, done.stderr
    assert "all packages load" in done.stdout
    to = tmp_path / "to here"
    assert (to / "tools/pack_run.py").read_bytes() == (world.project / "tools/pack_run.py").read_bytes()
    assert (to / "results/data/noise").read_bytes() == (world.project / "results/data/noise").read_bytes()
    assert not (to / "results/data/link").is_symlink() and (to / "results/data/link").read_text() == "linked"
    # An extra that is asked for, none that is not; neither torch nor what only torch needs; no tests.
    folder = to / ".venv/packages"
    assert {entry.name for entry in folder.iterdir() if "." not in entry.name} == {
        "trunk", "leaf", "twig", "shade", "seed"
    }  # fmt: skip
    assert {entry.name for entry in (folder / "leaf").iterdir()} == {"__init__.py", "tool"}
    assert os.access(folder / "leaf/tool", os.X_OK)
    assert not list(folder.glob("*.data"))
    names = ("trunk", "seed", "shade", "torch")
    code = "import " + ", ".join(names) + "; print(" + ", ".join(f"{name}.WHOSE" for name in names) + ")"
    told = run([to / ".venv/bin/python", "-c", code], env={"PATH": os.environ["PATH"]})
    assert told.stdout.split() == ["packed", "packed", "machine", "machine"], told.stderr
    assert (to / ".venv/installed").stat().st_mtime >= (to / "requirements.txt").stat().st_mtime
    assert not (to / ".parts").exists()


def test_a_damaged_part_is_refused_by_name_and_may_be_copied_again(world, packed, tmp_path):
    damaged, to = tmp_path / "damaged", tmp_path / "to"
    shutil.copytree(packed, damaged)
    part = damaged / "part-002"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    done = unpack(world, damaged, to)
    assert done.returncode == 1 and "error: part-002 is damaged" in done.stderr
    assert not (to / "tools").exists()
    part.write_bytes(whole)
    assert unpack(world, damaged, to).returncode == 0


def test_another_python_is_refused_before_anything_is_written(world, tmp_path):
    done = pack(world, tmp_path / "out", "--python", "3.99", "--have", "trunk", "seed")
    assert done.returncode == 0, done.stderr
    told = unpack(world, tmp_path / "out", tmp_path / "to")
    assert told.returncode == 1 and "packed for Python 3.99" in told.stderr and "PYTHON=python3.99" in told.stderr
    assert not (tmp_path / "to").exists()
