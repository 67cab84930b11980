"""The tidy frames of a run in the words of one paper, as its findings read them; COLUMNS says which.

`base` is the role of a model: `mbert` is the model that the paper studies, whatever it is in this run; `model` is its
name. `language` is that of an adaptation; of a similarity, the one beside English. `error` is the standard error over
test sentences, `lead` that of the distance to the highest layer. Text that does not apply is empty.
"""

from collections.abc import Iterable, Mapping
from functools import cache, cached_property

import numpy as np
import pandas as pd

from crossalign.catalog.addresses import Adjustment, parse_adaptation
from crossalign.catalog.targets import bases
from crossalign.results.frames import AS_MEASURED

PARTS = ("model", "adapted", "language", "pairs", "aggregation", "tokens")
MODEL = ("seed", "base", *PARTS, "task", "source", "init")
COLUMNS = {
    "scores": (*MODEL, "target", "set", "family", "metric", "preset", "train", "value", "error"),
    "similarity": (*MODEL, "corpus", "pair", "measure", "layer", "value", "error", "lead"),
    "distances": (*MODEL, "related", "unrelated", "separation"),
}
TYPES = dict.fromkeys(("value", "error", "lead", "related", "unrelated", "separation"), float)
TYPES |= {"seed": int, "layer": int}
# Half an interval of 95 % in standard errors.
HALF = 1.959964
# All other numbers of a score file are counts, or other readings of these.
METRICS = ("LAS", "accuracy", "F1", "token_F1", "EM")
MEASURES = ("anc", "matching")


def views(frames: Mapping[str, pd.DataFrame], paper: str, config: dict, control: str = AS_MEASURED) -> "Frames":
    """The frames of one paper; `control` chooses the similarities."""
    studied = bases(config, paper) if "base" in config.get(paper, {}) else []
    own = {name: _described(frames[name][frames[name]["paper"] == paper], studied) for name in COLUMNS}
    scores = own["scores"][own["scores"]["metric"].isin(METRICS)]
    error = (scores["high"] - scores["low"]) / (2 * HALF)
    family = scores["set"].str.split("/").str[1].str.split("_").str[0]
    similarity = own["similarity"].rename(columns={"index": "measure", "sampling": "error", "lead_sampling": "lead"})
    chosen = similarity["measure"].isin([config["similarity"]["index"], *MEASURES])
    similarity = similarity[chosen & (similarity["control"] == control)]
    return Frames(
        scores=scores.assign(error=error, family=family),
        similarity=similarity.assign(language=similarity["pair"].str.split("-").str[1]),
        distances=own["distances"].assign(language=frames["distances"]["language"]),
    )


def select(frame: pd.DataFrame, **wanted: str | Iterable[str]) -> pd.DataFrame:
    """The rows whose columns have these values, or one of several."""
    kept = [frame[name].isin([value] if isinstance(value, str) else list(value)) for name, value in wanted.items()]
    return frame[np.logical_and.reduce(kept)]


def _described(frame: pd.DataFrame, studied: list[str]) -> pd.DataFrame:
    """A frame with what the names of its models say; a pretrained model has its place among several as its seed."""
    parts = pd.DataFrame([_parts(name) for name in frame["model"]], frame.index, PARTS)
    base = parts["model"].where(~parts["model"].isin(studied), "mbert")
    places = parts["model"].map({name: place for place, name in enumerate(studied, start=1)}).fillna(1)
    found = frame.assign(**parts, base=base, seed=frame["seed"].fillna(places.astype(int)).astype(int))
    return found.fillna(dict.fromkeys(found.select_dtypes(include=["object", "string"]), ""))


@cache
def _parts(name: str) -> tuple[str, ...]:
    base, plus, adaptation = name.partition("+")
    if not plus:
        return base, "", "", "", "", ""
    made = parse_adaptation(adaptation)
    if isinstance(made, Adjustment):
        return base, "adjust", made.lang, made.pairs, made.aggregation, made.tokens
    return base, "mlm", made.text, "", "", ""


def from_records(scores: Iterable[dict] = (), similarity: Iterable[dict] = (), distances: Iterable[dict] = ()) -> dict:
    """Such frames of printed numbers: one seed, and no errors; text that is not told is empty."""
    made = {}
    for (name, columns), rows in zip(COLUMNS.items(), (scores, similarity, distances), strict=True):
        found = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
        found = found.fillna({"seed": 1} | dict.fromkeys({*columns} - {*TYPES}, ""))
        made[name] = found.astype({column: kind for column, kind in TYPES.items() if column in columns})
    return made


class Frames(dict[str, pd.DataFrame]):
    """The frames of a paper, and many draws of them, which are made once."""

    @cached_property
    def drawn(self) -> dict[str, pd.DataFrame]:
        """Every number drawn again within its error, as other test sentences would have it; a draw passes for a seed.

        The layers of a curve move together, and each by itself as far as its distance to the highest is uncertain.
        """
        generator = np.random.default_rng(1)
        scores, similarity, distances = (_repeated(self[name]) for name in COLUMNS)
        scores["value"] += generator.standard_normal(len(scores)) * scores["error"]
        curves = similarity.groupby(["seed", "address", "corpus", "pair", "measure"], sort=False).ngroup().to_numpy()
        together = generator.standard_normal(curves.max(initial=-1) + 1)[curves]
        apart = generator.standard_normal(len(similarity)) * similarity["lead"].fillna(0.0)
        similarity["value"] += together * similarity["error"] + apart
        for name in ("related", "unrelated", "separation"):
            distances[name] += generator.standard_normal(len(distances)) * distances[f"{name}_error"]
        return {"scores": scores, "similarity": similarity, "distances": distances}


def _repeated(frame: pd.DataFrame, times: int = 200) -> pd.DataFrame:
    """So many draws: their spread is known to a twentieth."""
    found = frame.iloc[np.repeat(np.arange(len(frame)), times)].reset_index(drop=True)
    return found.assign(seed=found["seed"] * times + np.tile(np.arange(times), len(frame)))
