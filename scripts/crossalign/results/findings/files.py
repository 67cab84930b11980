"""findings.csv, one row per quantity, and findings.json, one record per finding."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path

import pandas as pd

from crossalign.results.findings.finding import FAILS, FINDINGS, UNLEARNT, UNSURE, VERDICTS
from crossalign.results.findings.judge import Estimate, Judged
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_json, write_atomic, write_json

NUMBERS = tuple(one.name for one in fields(Estimate))
COLUMNS = ("paper", "id", "statement", "finding_verdict", "agreement", "controlled", *NUMBERS, "reason", "why")


def with_reasons(judged: Iterable[Judged], known: Mapping[str, str]) -> list[Judged]:
    """The findings that do not come out with what was found out about why."""
    if unknown := [name for name in known if name not in FINDINGS]:
        raise UserError(f"config: reasons: '{unknown[0]}' is no finding; they are {', '.join(FINDINGS)}")
    told = (FAILS, UNSURE, UNLEARNT)
    return [replace(one, why=known.get(one.id, "") if one.verdict in told else "") for one in judged]


def write_findings(judged: Iterable[Judged], table: Path) -> Counter[str]:
    """Write findings.csv, and findings.json beside it; returns how many there are of each verdict."""
    records = [asdict(one) for one in judged]
    rows = []
    for one in records:
        told = one | {"statement": one["says"], "finding_verdict": one["verdict"], "verdict": ""}
        rows += [told | number for number in one["estimates"]] or [told]
        # As JSON has it: a number that is not known is null.
        one["estimates"] = [
            {name: None if pd.isna(value) else value for name, value in number.items()} for number in one["estimates"]
        ]
    with write_atomic(table) as stream:
        frame = pd.DataFrame(rows, columns=COLUMNS).astype({"n": "Int64"})
        frame.to_csv(stream, index=False, float_format="%.4g", lineterminator="\n")
    write_json(table.with_suffix(".json"), {"findings": records})
    return Counter({verdict: sum(one["verdict"] == verdict for one in records) for verdict in VERDICTS})


def read_findings(path: Path) -> list[Judged] | None:
    """The findings of a run's findings.json; None where there is none."""
    found = read_json(path, "findings, as findings.json of a run has them")
    if found is None:
        return None
    try:
        return [Judged(**one | {"estimates": [*map(_estimate, one["estimates"])]}) for one in found["findings"]]
    except (TypeError, KeyError) as error:
        raise UserError(f"{path}: no findings ({error}); make it again") from None


def _estimate(number: dict) -> Estimate:
    return Estimate(**{name: math.nan if value is None else value for name, value in number.items()})
