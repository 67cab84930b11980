"""Fixtures that several test files share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Times differ between machines and with what else they do; a slow example is no failure.
settings.register_profile("workflow", deadline=None)
settings.load_profile("workflow")

# What a shell starts in the background ignores Ctrl-C, and so would the runs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real public data beside the repository; CROSSALIGN_SHARED names another place."""
    folder = Path(os.environ.get("CROSSALIGN_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder} (set CROSSALIGN_SHARED to a folder with data/ and manifest/)")
    return folder
