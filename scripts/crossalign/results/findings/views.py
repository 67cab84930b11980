"""The tidy frames of a run in the words of one paper, as its findings read them.

scores       seed, base, model, adapted, language, pairs, aggregation, tokens, task, source, target, set, family, init,
             metric, preset, train, value, error
similarity   seed, base, model, adapted, task, source, init, corpus, pair, language, layer, measure, value, error, lead
distances    seed, base, model, adapted, task, init, language, related, unrelated, separation

`base` is the role of a model: `mbert` is the model that the paper studies, whatever it is in this run; `model` is its
name. `language` is that of an adaptation; of a similarity, the one beside English. `error` is the standard error over
test sentences, `lead` that of the distance to the highest layer. Text that does not apply is empty.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pandas as pd

from crossalign.catalog.addresses import Adjustment, parse_adaptation
from crossalign.catalog.targets import bases
from crossalign.results.frames import AS_MEASURED

# Half an interval of 95 % in standard errors.
HALF = 1.959964
# All other numbers of a score file are counts, or other readings of these.
METRICS = ("LAS", "accuracy", "F1", "token_F1", "EM")
MEASURES = ("anc", "matching")
PARTS = ("model", "adapted", "language", "pairs", "aggregation", "tokens")


def views(frames: Mapping[str, pd.DataFrame], paper: str, config: dict, control: str = AS_MEASURED) -> "Frames":
    """The frames of one paper; `control` chooses the similarities."""
    own = {name: frame[frame["paper"] == paper] for name, frame in frames.items()}
    studied = bases(config, paper) if "base" in config.get(paper, {}) else []
    similar = (
        own["similarity"]
        .query("control == @control")
        .rename(columns={"index": "measure", "sampling": "error", "lead_sampling": "lead"})
    )
    similar = similar[similar["measure"].isin([config["similarity"]["index"], *MEASURES])]
    scores, similarity = _described(own["scores"], studied), _described(similar, studied)
    scores = scores[scores["metric"].isin(METRICS)].copy()
    scores["error"] = (scores["high"] - scores["low"]) / (2 * HALF)
    scores["family"] = scores["set"].str.split("/").str[1].str.split("_").str[0]
    similarity["language"] = similarity["pair"].str.split("-").str[1]
    distances = own["distances"]
    described = _described(distances, studied)
    described["language"] = distances["language"]
    return Frames(scores=scores, similarity=similarity, distances=described)


def _described(frame: pd.DataFrame, studied: list[str]) -> pd.DataFrame:
    """A frame with what the names of its models say; a pretrained model has its place among several as its seed."""
    names = {name: _parts(name) for name in frame["model"].unique()}
    told = {part: [names[name][place] for name in frame["model"]] for place, part in enumerate(PARTS)}
    base = ["mbert" if name in studied else name for name in told["model"]]
    places = [studied.index(name) + 1 if name in studied else 1 for name in told["model"]]
    found = frame.assign(**told, base=base, seed=frame["seed"].fillna(pd.Series(places, frame.index)).astype(int))
    text = found.select_dtypes(include=["object", "string"]).columns
    return found.fillna(dict.fromkeys(text, ""))


def _parts(name: str) -> tuple[str, str, str, str, str, str]:
    base, plus, adaptation = name.partition("+")
    if not plus:
        return base, "", "", "", "", ""
    made = parse_adaptation(adaptation)
    if isinstance(made, Adjustment):
        return base, "adjust", made.lang, made.pairs, made.aggregation, made.tokens
    return base, "mlm", made.text, "", "", ""


class Frames(dict[str, pd.DataFrame]):
    """The frames of a paper, and many draws of them, which are made once."""

    @cached_property
    def drawn(self) -> dict[str, pd.DataFrame]:
        """200 draws: their spread is known to a twentieth."""
        return drawn(self, 200)


def drawn(frames: Mapping[str, pd.DataFrame], times: int) -> dict[str, pd.DataFrame]:
    """Every number drawn again within its error, as other test sentences would have it; a draw passes for a seed.

    The layers of a curve move together, and each by itself as far as its distance to the highest layer is uncertain.
    """
    generator = np.random.default_rng(1)
    scores, similarity, distances = (_repeated(frames[name], times) for name in ("scores", "similarity", "distances"))
    scores["value"] += generator.standard_normal(len(scores)) * scores["error"]
    curves = similarity.groupby(["seed", "address", "corpus", "pair", "measure"], sort=False).ngroup().to_numpy()
    together = generator.standard_normal(curves.max() + 1)[curves] if len(curves) else 0.0
    apart = generator.standard_normal(len(similarity)) * similarity["lead"].fillna(0.0)
    similarity["value"] += together * similarity["error"] + apart
    for name in ("related", "unrelated", "separation"):
        distances[name] += generator.standard_normal(len(distances)) * distances[f"{name}_error"]
    return {"scores": scores, "similarity": similarity, "distances": distances}


def _repeated(frame: pd.DataFrame, times: int) -> pd.DataFrame:
    found = frame.iloc[np.repeat(np.arange(len(frame)), times)].reset_index(drop=True)
    return found.assign(seed=found["seed"] * times + np.tile(np.arange(times), len(frame)))
