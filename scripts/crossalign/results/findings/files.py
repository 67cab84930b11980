"""findings.csv, one row per quantity, and findings.json, one record per finding."""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path

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
    judged = list(judged)
    with write_atomic(table) as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for one in judged:
            told = {"paper": one.paper, "id": one.id, "statement": one.says, "finding_verdict": one.verdict}
            told |= {name: getattr(one, name) for name in ("agreement", "controlled", "reason", "why")}
            for number in one.estimates or [None]:
                writer.writerow(told | {name: _shown(getattr(number, name, "")) for name in NUMBERS})
    write_json(table.with_suffix(".json"), {"findings": [_plain(one) for one in judged]})
    return Counter({verdict: sum(one.verdict == verdict for one in judged) for verdict in VERDICTS})


def read_findings(path: Path) -> list[Judged] | None:
    """The findings of a run's findings.json; None where there is none."""
    found = read_json(path, "findings, as findings.json of a run has them")
    if found is None:
        return None
    try:
        return [
            Judged(**one | {"estimates": [_estimate(number) for number in one["estimates"]]})
            for one in found["findings"]
        ]
    except (TypeError, KeyError) as error:
        raise UserError(f"{path}: no findings ({error}); make it again") from None


def _plain(one: Judged) -> dict:
    """As JSON has it: a number that is not known is null."""
    record = asdict(one)
    record["estimates"] = [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in number.items()}
        for number in record["estimates"]
    ]
    return record


def _estimate(number: dict) -> Estimate:
    return Estimate(**{name: math.nan if value is None else value for name, value in number.items()})


def _shown(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return value
