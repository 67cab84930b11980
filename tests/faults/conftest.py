"""Fixtures of the fault tests."""

import errno
import os
import resource
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from tests.faults.harness import Run, make_project


@pytest.fixture(scope="session")
def project(root, tmp_path_factory):
    """A tiny project after one undisturbed run; tests that hurt it take a copy."""
    folder = tmp_path_factory.mktemp("faults") / "a project"  # a space, as people have them
    make_project(root, folder)
    run = Run(folder)
    assert run.end() == 0, run.said()
    return folder


@pytest.fixture
def copy(project, tmp_path):
    """The finished project, to be hurt."""
    return shutil.copytree(project, tmp_path / "copy", ignore=shutil.ignore_patterns("tmp", "*.log"))


def mount(*arguments):
    """Mount something; skips where that is not allowed."""
    try:
        done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)
    except FileNotFoundError as error:
        pytest.skip(f"mounting is not possible here: {error}")
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")


def unmount(folder):
    """Take it away, even if a process that is about to end still looks at it."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def small_disk(folder, size):
    """A folder on a disk of so many bytes; what is in it goes with the disk."""
    folder.mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", f"size={size}", "none", folder)
    try:
        yield os.strerror(errno.ENOSPC)
    finally:
        unmount(folder)


@contextmanager
def small_files(folder, size):
    """No file may be larger than so many bytes: a quota that needs no rights."""
    folder.mkdir(exist_ok=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield os.strerror(errno.EFBIG)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(params=[small_disk, small_files], ids=["small disk", "small files"])
def no_room(request):
    """Two ways to have no room, each called with a folder and a number of bytes; gives the system's words for it."""
    return request.param
