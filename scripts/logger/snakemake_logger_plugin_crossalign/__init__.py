"""A logger plugin of Snakemake 9: `snakemake --logger crossalign`, if this package's folder is on the PYTHONPATH.

Snakemake finds plugins by their names on the path, so nothing has to be installed. What it does is in the library.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from crossalign.progress.handler import LogHandler, LogHandlerSettings

__all__ = ["LogHandler", "LogHandlerSettings"]
