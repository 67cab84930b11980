"""Printed numbers as the frames that findings read: one seed, and no errors."""

from collections.abc import Callable, Iterable

import pandas as pd

from crossalign.results.names import PRINTED_MODELS
from crossalign.results.published import published, readings

MODELS = {printed: name for name, printed in PRINTED_MODELS.items()}

TEXT = ("base", "model", "adapted", "language", "pairs", "aggregation", "tokens", "task", "source", "target", "set")
TEXT += ("family", "init", "metric", "preset", "train")
SCORES = ("seed", *TEXT, "value", "error")
SIMILARITY = ("seed", "base", "model", "adapted", "task", "source", "init", "corpus", "pair", "language")
SIMILARITY += ("layer", "measure", "value", "error", "lead")
NUMBERS = ("value", "error", "lead", "related", "unrelated", "separation")
DISTANCES = ("seed", "base", "model", "adapted", "task", "init", "language", "related", "unrelated", "separation")


def random_init(item: str, set_of: Callable[[dict[str, str]], str]) -> list[dict]:
    """The rows of a RANDOM-INIT table as scores: REF, and what a layer set gives (REF and its difference)."""
    rows = [row for row in published(item).rows if row["value"] and row["target"] != "X"]
    place = [name for name in rows[0] if name not in ("layers", "kind", "value", "flag")]
    refs = {tuple(row[name] for name in place): float(row["value"]) for row in rows if row["layers"] == "ref"}
    found = []
    for row in rows:
        key = tuple(row[name] for name in place)
        if row["kind"] == "delta" and key not in refs:
            continue
        value = float(row["value"]) + (refs[key] if row["kind"] == "delta" else 0.0)
        init = "ref" if row["layers"] == "ref" else f"random-{row['layers']}"
        told = {name: row[name] for name in ("task", "source", "target", "metric")}
        name = set_of(row)
        family = name.split("/")[1].split("_")[0]
        found.append(
            told | {"base": "mbert", "model": "mbert", "init": init, "value": value, "set": name, "family": family}
        )
    return found


def curves(item: str, **told: str) -> list[dict]:
    """Values read off a figure as similarities; `told` are columns that the readings lack, such as the measure."""
    found = []
    for row in readings(item).rows:
        name = MODELS.get(row["model"], row["model"])
        place = {"base": name, "model": name, "pair": row["pair"], "language": row["pair"].split("-")[-1]}
        found.append(told | place | {"layer": int(row["layer"]), "value": float(row["value"])})
    return found


def frames(scores: Iterable[dict] = (), similarity: Iterable[dict] = (), distances: Iterable[dict] = ()) -> dict:
    """Records as the three frames; text that is not told is empty."""
    return {
        "scores": _frame(scores, SCORES),
        "similarity": _frame(similarity, SIMILARITY),
        "distances": _frame(distances, DISTANCES),
    }


def _frame(rows: Iterable[dict], columns: tuple[str, ...]) -> pd.DataFrame:
    found = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
    numbers = {name: float for name in NUMBERS if name in found} | {"seed": int}
    numbers |= {"layer": int} if "layer" in found else {}
    return found.fillna({"seed": 1} | dict.fromkeys(TEXT, "")).astype(numbers)
