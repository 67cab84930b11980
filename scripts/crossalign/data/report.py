"""The account of a prepared file: what was read, kept, dropped and repaired, and why."""

from collections import Counter
from pathlib import Path
from typing import Any

from crossalign.runtime.files import write_json


class Report:
    """Counts of one preparation. Items are sentences, pairs, questions or lines, as the format has them.

    Every item that was read is either kept or dropped for one reason; repairs and further counts come on top.
    """

    def __init__(self) -> None:
        self.read = 0
        self.kept = 0
        self.dropped: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.facts: dict[str, Any] = {}

    def drop(self, reason: str) -> None:
        """Count one item that was read and is not kept."""
        self.dropped[reason] += 1

    def repair(self, what: str, times: int = 1) -> None:
        """Count a repair; nothing is noted for zero times."""
        if times:
            self.repaired[what] += times

    def as_dict(self) -> dict[str, Any]:
        """The report as it is written. Refuses an account that does not add up."""
        if self.read != self.kept + self.dropped.total():
            raise RuntimeError(f"{self.read} read, but {self.kept} kept and {self.dropped.total()} dropped")
        return {
            "read": self.read,
            "kept": self.kept,
            "dropped": dict(sorted(self.dropped.items())),
            "repaired": dict(sorted(self.repaired.items())),
            **dict(sorted((key, count) for key, count in self.counts.items() if count)),
            **self.facts,
        }

    def write(self, path: str | Path) -> None:
        """Write the report as JSON."""
        write_json(path, self.as_dict(), ensure_ascii=False)


class Names:
    """Identifiers of the items of one file. Predictions are filed under them, so a repeated one is changed."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.seen: set[str] = set()

    def take(self, wanted: str) -> str:
        """`wanted`, or `wanted#2`, `wanted#3`, … if an earlier item has it."""
        name, count = wanted, 1
        while name in self.seen:
            count += 1
            name = f"{wanted}#{count}"
        self.report.repair("repeated identifier made unique", int(count > 1))
        self.seen.add(name)
        return name


def report_path(out: str | Path) -> Path:
    """The place of the report of a prepared file: `train.report.json` beside `train.conllu`."""
    out = Path(out)
    return out.with_name(out.name.removesuffix(out.suffix) + ".report.json")
