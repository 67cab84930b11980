"""Reading what a run has left: tables as records, JSON as objects; what is broken is named."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossalign.runtime.errors import UserError


def read_csv(path: Path, columns: Sequence[str]) -> list[dict[str, str]] | None:
    """The rows of a CSV file; None where there is no file."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, restval="")
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"{path}: the columns {', '.join(missing)} are missing; make the file again")
            return list(reader)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: no CSV that can be read ({error}); delete it and make it again") from None


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: no JSON that can be read ({error}); delete it and make it again") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: expected an object with named values; delete it and make it again")
    return found
