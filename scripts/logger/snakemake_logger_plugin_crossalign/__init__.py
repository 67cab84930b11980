"""A logger plugin of Snakemake 9, found by its name on the PYTHONPATH: `snakemake --logger crossalign`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from crossalign.progress.handler import LogHandler

__all__ = ["LogHandler"]
