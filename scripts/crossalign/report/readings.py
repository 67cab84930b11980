"""The points of a figure beside which a value is printed, for the page to draw ours and theirs together."""

from pathlib import Path

from crossalign.runtime.files import read_csv

COLUMNS = ("panel", "series", "x", "y", "printed", "verdict")


def number(value: str) -> float | None:
    """A number of a CSV file, or None."""
    try:
        return float(value) if value else None
    except ValueError:
        return None


def gather_readings(path: Path) -> list[dict]:
    """Panels with their series; empty where the paper's curves were not read."""
    rows = read_csv(path, COLUMNS) or []
    panels: dict[str, dict[str, list]] = {}
    for row in rows:
        if number(row["printed"]) is None:
            continue
        point = [row["x"], number(row["y"]), number(row["printed"]), row["verdict"]]
        panels.setdefault(row["panel"], {}).setdefault(row["series"], []).append(point)
    return [
        {"title": title, "series": [{"label": label, "points": points} for label, points in series.items()]}
        for title, series in panels.items()
    ]
