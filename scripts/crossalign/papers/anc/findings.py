"""The findings of `anc`: CKA fails on NormFormer models, whose translations are alike by ANC and by matching."""

from functools import partial

import pandas as pd

from crossalign.papers.anc.items import PAPER, PRINTED_MODELS, normformer
from crossalign.results.findings.finding import NotRun, register
from crossalign.results.findings.shapes import level, peak
from crossalign.results.findings.views import from_records, select
from crossalign.results.published import published, readings

finding = partial(register, PAPER)
PEAK = "rise > 0 and fall > 0"
MEASURES = dict.fromkeys((1, 7), "cka") | {2: "matching"} | dict.fromkeys((3, 4, 5, 6), "anc")


def printed() -> dict[str, pd.DataFrame]:
    """Table 1 in points, and the curves that were read off the figures."""
    names = {theirs: ours for ours, theirs in PRINTED_MODELS.items()}
    scores = [{"init": "ref"} | row | {"value": 100 * float(row["value"])} for row in published(f"{PAPER}/table1").rows]
    curves = []
    for place, measure in sorted(MEASURES.items()):
        told = {"corpus": "xnliext", "measure": measure}
        rows = readings(f"{PAPER}/figure{place}").rows
        curves += [row | told | {"language": row["pair"].split("-")[-1]} for row in rows]
    for row in (*scores, *curves):
        row["base"] = row["model"] = names.get(row["model"], row["model"])
    return from_records(scores, curves)


def measured(similarity: pd.DataFrame, measure: str, models: list[str], languages: list[str]) -> pd.DataFrame:
    """The curves of pretrained models over pairs of English and each language."""
    return select(similarity, model=models, language=languages, task="", corpus="xnliext", measure=measure)


def schemes(config: dict) -> list[str]:
    """Post-LN, Pre-LN and NormFormer."""
    if len(config[PAPER]["schemes"]) < 3:
        raise NotRun("needs three models that differ in normalisation alone, NormFormer among them")
    return config[PAPER]["schemes"]


def of_normformer(similarity: pd.DataFrame, config: dict, measure: str) -> pd.DataFrame:
    schemes(config)
    return measured(similarity, measure, [normformer(config)], config[PAPER]["norm_languages"])


def halves(curves: pd.DataFrame) -> pd.DataFrame:
    """The means over layers 0-5 and 6-12 of every pair."""
    return pd.DataFrame({"lower_layers": level(curves, 0, 5, ["pair"]), "upper_layers": level(curves, 6, 12, ["pair"])})


# A similarity near zero; a fall by what would be a high one.
@finding(
    "cka-normformer-zero",
    where="figure 1",
    each="pair",
    holds="upper_layers < 0.1 and lower_layers - upper_layers > 0.3",
)
def cka_fails(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """CKA of a NormFormer model falls to about zero in the middle layers and stays there."""
    return halves(of_normformer(similarity, config, "cka"))


# Two curves that one would call the same.
@finding(
    "cka-normformer-v2",
    where="figure 1, figure 7",
    each="pair",
    holds="lower_layers > -0.05 and lower_layers < 0.05 and upper_layers > -0.05 and upper_layers < 0.05",
)
def second_run(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """A second NormFormer model, trained from another start, has the same CKA."""
    study = config[PAPER]
    second = measured(similarity, "cka", [study["second_normformer"]], study["norm_languages"])
    return halves(second) - halves(of_normformer(similarity, config, "cka"))


@finding("anc-normformer", where="figure 4", each="pair", most=True, holds=PEAK)
def anc_of_normformer(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """ANC of a NormFormer model rises to a peak in the middle layers and falls again."""
    return peak(of_normformer(similarity, config, "anc"), ["pair"])


@finding("anc-deep", where="figure 4", each="pair", holds="upper_layers > 0.3")
def anc_in_deeper_layers(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """ANC of a NormFormer model stays high in the deeper layers."""
    return halves(of_normformer(similarity, config, "anc"))[["upper_layers"]]


@finding(
    "match-deep",
    where="figure 1, figure 2",
    each="pair",
    holds="matching > 0.1 and matching > cka and last_layer < sixth_layer",
)
def deeper_layers_match(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """The deeper layers of a NormFormer model match translations that CKA misses, if ever fewer."""
    matching = of_normformer(similarity, config, "matching")
    found = {"matching": level(matching, 6, 12, ["pair"]), "sixth_layer": level(matching, 6, 6, ["pair"])}
    found |= {"last_layer": level(matching, 12, 12, ["pair"])}
    return pd.DataFrame(found | {"cka": halves(of_normformer(similarity, config, "cka"))["upper_layers"]})


# Two standard errors of the difference of two accuracies on the 2,490 examples of XNLI's validation set.
@finding(
    "norm-transfer",
    where="table 1",
    task="nli",
    each="model",
    holds="ahead_of_post_ln > -2.5 and ahead_of_post_ln < 2.5",
)
def normalisation_and_transfer(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    """Models that differ in normalisation alone transfer alike from English to other languages."""
    study = config[PAPER]
    own = select(scores, task="nli", metric="accuracy", model=schemes(config))
    others = [lang for lang in study["xnli_languages"] if lang != "en"]
    ours = own.pivot_table(index=["seed", "model"], columns="target", values="value").reindex(columns=["en", *others])
    first = ours.index.get_level_values("model") == study["schemes"][0]
    post = ours[first].droplevel("model").reindex(ours.index, level="seed")
    found = {"ahead_of_post_ln": (ours - post)[others].mean(axis=1), "score": ours[others].mean(axis=1)}
    found |= {"score_english": ours["en"], "score_post": post[others].mean(axis=1)}
    return pd.DataFrame(found)[~first]


@finding("anc-known", where="figure 3", each="model pair", most=True, holds=PEAK)
def anc_of_known_models(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """ANC of mBERT and XLM-R rises to a peak in the middle layers and falls again."""
    study = config[PAPER]
    return peak(measured(similarity, "anc", study["known_models"], study["known_languages"]), ["model", "pair"])


@finding("scaling-pattern", where="figure 5, figure 6", each="model", holds=PEAK)
def anc_by_size(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """In masked and causal models of every size ANC rises to a peak and falls again."""
    study = config[PAPER]
    anc = measured(similarity, "anc", [*study["xlmr"], *study["xglm"]], [*study["scaling_languages"], "mean"])
    # The paper shows the mean over the pairs alone; ours is made as the peak is sought.
    anc = anc[anc["pair"] == "mean"] if "mean" in set(anc["pair"]) else anc
    return peak(anc, ["model"])


# From here on a correlation is called strong (Cohen); the authors' own figure has its highest curves at 0.65.
@finding(
    "anc-peak",
    where="figure 3",
    each="model",
    holds="highest_layer > 0.5",
    printed=lambda: {(model, "highest_layer"): 0.7 for model in ("mbert", "xlmr-base")},
)
def highest_anc(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    """In the layers that are most alike, ANC of mBERT and XLM-R is high: about 0.7."""
    study = config[PAPER]
    anc = measured(similarity, "anc", study["known_models"], study["known_languages"])
    return anc.groupby(["seed", "model"])["value"].max().to_frame("highest_layer")
