"""The findings of `anc`: CKA fails on NormFormer models, whose translations are alike by ANC and by matching."""

import pandas as pd

from crossalign.papers.anc.items import PAPER, normformer
from crossalign.results.findings.finding import NotRun, finding
from crossalign.results.findings.printed import MODELS, curves, frames
from crossalign.results.findings.shapes import level, peak
from crossalign.results.published import published

PEAK = "rise > 0 and fall > 0"
MEASURES = dict.fromkeys(("figure1", "figure7"), "cka") | {"figure2": "matching"}


def printed() -> dict[str, pd.DataFrame]:
    """Table 1 in points, and the curves that were read off the figures."""
    rows = published(f"{PAPER}/table1").rows
    scores = []
    for row in rows:
        told = {name: row[name] for name in ("task", "source", "target", "metric")}
        told |= dict.fromkeys(("base", "model"), MODELS[row["model"]])
        scores.append(told | {"init": "ref", "value": 100 * float(row["value"])})
    read = {f"figure{place}": MEASURES.get(f"figure{place}", "anc") for place in range(1, 8)}
    similar = [curves(f"{PAPER}/{name}", measure=measure, corpus="xnliext") for name, measure in read.items()]
    return frames(scores, [row for each in similar for row in each])


def measured(similarity: pd.DataFrame, measure: str, models: list[str], languages: list[str]) -> pd.DataFrame:
    """The curves of pretrained models over pairs of English and each language."""
    there = similarity["model"].isin(models) & similarity["language"].isin(languages) & (similarity["task"] == "")
    return similarity[there & (similarity["corpus"] == "xnliext") & (similarity["measure"] == measure)]


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


@finding(
    "cka-normformer-zero",
    paper=PAPER,
    where="figure 1",
    says="CKA of a NormFormer model falls to about zero in the middle layers and stays there",
    sentence="[…] the CKA score drops dramatically at the middle layer of the network and continues to hang around "
    "zero for all remaining layers (layers 6-12).",
    each="pair",
    # A similarity near zero; a fall by what would be a high one.
    holds="upper_layers < 0.1 and lower_layers - upper_layers > 0.3",
)
def cka_fails(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    return halves(of_normformer(similarity, config, "cka"))


@finding(
    "cka-normformer-v2",
    paper=PAPER,
    where="figure 1, figure 7",
    says="A second NormFormer model, trained from another start, has the same CKA",
    sentence="To double-check the result we also retrain the scale_normformer the second time with a different random "
    "restart and get the same CKA results (see Figure 7 in Appendix A).",
    each="pair",
    # Two curves that one would call the same.
    holds="lower_layers > -0.05 and lower_layers < 0.05 and upper_layers > -0.05 and upper_layers < 0.05",
)
def second_run(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    study = config[PAPER]
    second = measured(similarity, "cka", [study["second_normformer"]], study["norm_languages"])
    return halves(second) - halves(of_normformer(similarity, config, "cka"))


@finding(
    "anc-normformer",
    paper=PAPER,
    where="figure 4",
    says="ANC of a NormFormer model rises to a peak in the middle layers and falls again",
    sentence='The figure shows that unlike CKA (Figure 1), the ANC is able to reveal the "first align, then predict" '
    "pattern for the scale_normformer and better explains the evidence we provided in Table 1 and Figure 2.",
    each="pair",
    most=True,
    holds=PEAK,
)
def anc_of_normformer(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    return peak(of_normformer(similarity, config, "anc"), ["pair"])


@finding(
    "anc-deep",
    paper=PAPER,
    where="figure 4",
    says="ANC of a NormFormer model stays high in the deeper layers",
    sentence="Our method, unlike CKA (Figure 1), does capture the cross-lingual similarity existing in the deeper "
    "layers of XLM-Roberta Normformer (scale_normformer).",
    each="pair",
    holds="upper_layers > 0.3",
)
def anc_in_deeper_layers(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    return halves(of_normformer(similarity, config, "anc"))[["upper_layers"]]


@finding(
    "match-deep",
    paper=PAPER,
    where="figure 1, figure 2",
    says="The deeper layers of a NormFormer model match translations that CKA misses, if ever fewer",
    sentence="The result again shows relatively high matching scores for the deeper layers in contrast to the CKA "
    "result from Figure 1. There is some decline, but nothing like zero similarity of CKA.",
    each="pair",
    holds="matching > 0.1 and matching > cka and last_layer < sixth_layer",
)
def deeper_layers_match(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    matching = of_normformer(similarity, config, "matching")
    found = {"matching": level(matching, 6, 12, ["pair"]), "sixth_layer": level(matching, 6, 6, ["pair"])}
    found |= {"last_layer": level(matching, 12, 12, ["pair"])}
    return pd.DataFrame(found | {"cka": halves(of_normformer(similarity, config, "cka"))["upper_layers"]})


@finding(
    "norm-transfer",
    paper=PAPER,
    where="table 1",
    says="Models that differ in normalisation alone transfer alike from English to other languages",
    sentence="The models show similar zero-shot cross-lingual transfer performance. […] We see no significant gains "
    "from the scale_pre or scale_normformer, but crucially we see no significant losses either.",
    task="nli",
    each="model",
    # Two standard errors of the difference of two accuracies on the 2,490 examples of XNLI's validation set.
    holds="ahead_of_post_ln > -2.5 and ahead_of_post_ln < 2.5",
)
def normalisation_and_transfer(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    study = config[PAPER]
    own = scores[(scores["task"] == "nli") & (scores["metric"] == "accuracy") & scores["model"].isin(schemes(config))]
    others = [lang for lang in study["xnli_languages"] if lang != "en"]
    ours = own.pivot_table(index=["seed", "model"], columns="target", values="value").reindex(columns=["en", *others])
    first = ours.index.get_level_values("model") == study["schemes"][0]
    post = ours[first].droplevel("model").reindex(ours.index, level="seed")
    found = {"ahead_of_post_ln": (ours - post)[others].mean(axis=1), "score": ours[others].mean(axis=1)}
    found |= {"score_english": ours["en"], "score_post": post[others].mean(axis=1)}
    return pd.DataFrame(found)[~first]


@finding(
    "anc-known",
    paper=PAPER,
    where="figure 3",
    says="ANC of mBERT and XLM-R rises to a peak in the middle layers and falls again",
    sentence="The result demonstrates that our method passes the proposed sanity check by being able to reveal the "
    '"first align, then predict" pattern.',
    each="model pair",
    most=True,
    holds=PEAK,
)
def anc_of_known_models(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    study = config[PAPER]
    return peak(measured(similarity, "anc", study["known_models"], study["known_languages"]), ["model", "pair"])


@finding(
    "scaling-pattern",
    paper=PAPER,
    where="figure 5, figure 6",
    says="In masked and causal models of every size ANC rises to a peak and falls again",
    sentence="Figures 5 and 6 reveal that the crosslingual similarity of multilingual representations in all the "
    'networks we study follows the same "first align, then translate" pattern.',
    each="model",
    holds=PEAK,
)
def anc_by_size(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    study = config[PAPER]
    anc = measured(similarity, "anc", [*study["xlmr"], *study["xglm"]], [*study["scaling_languages"], "mean"])
    # The paper shows the mean over the pairs alone; ours is made as the peak is sought.
    anc = anc[anc["pair"] == "mean"] if "mean" in set(anc["pair"]) else anc
    return peak(anc, ["model"])


@finding(
    "anc-peak",
    paper=PAPER,
    where="figure 3",
    says="In the layers that are most alike, ANC of mBERT and XLM-R is high: about 0.7",
    sentence="Also, the correlation at the most language natural layers is about 0.7, which indicates that the ANC's "
    "strong assumption of one-to-one aligned neurons is informative.",
    each="model",
    # From here on a correlation is called strong (Cohen); the authors' own figure has its highest curves at 0.65.
    holds="highest_layer > 0.5",
    printed=lambda: {(model, "highest_layer"): 0.7 for model in ("mbert", "xlmr-base")},
)
def highest_anc(similarity: pd.DataFrame, config: dict) -> pd.DataFrame:
    study = config[PAPER]
    anc = measured(similarity, "anc", study["known_models"], study["known_languages"])
    return anc.groupby(["seed", "model"])["value"].max().to_frame("highest_layer")
