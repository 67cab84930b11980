"""The findings of `talk`: which unseen languages mBERT learns, and what another script does.

The slides print no numbers for them.
"""

import pandas as pd

from crossalign.papers.talk.items import PAPER, in_latin, task_of
from crossalign.results.findings.finding import NotRun, finding
from crossalign.results.findings.printed import frames
from crossalign.results.names import METRICS, language

SYSTEMS = ["bilstm", "mbert", "mlm"]


def printed() -> dict[str, pd.DataFrame]:
    """The bars of the slides have no numbers."""
    return frames()


def unseen(config: dict, *langs: str) -> list[str]:
    """Those of the languages that are in this run and that its model has not read."""
    read = config[PAPER].get("read_languages", [])
    if not (unread := [lang for lang in langs if lang not in read]):
        raise NotRun(f"the model has read {' and '.join(map(language, langs))}")
    if not (there := [lang for lang in unread if lang in config[PAPER]["profile_languages"]]):
        raise NotRun(f"{', '.join(map(language, unread))}: not among talk.profile_languages")
    return there


def systems(scores: pd.DataFrame, config: dict, lang: str, suffix: str = "") -> pd.DataFrame:
    """The baseline, the model and the model after MLM on a language, by seed, and the best of them as the score."""
    task = task_of(config, lang)
    own = scores[(scores["preset"] == f"unseen-{task}") & (scores["target"] == lang)]
    own = own[(own["metric"] == METRICS[task]) & (own["set"].str.contains("+latn", regex=False) == bool(suffix))]
    adapted = own["language"] == f"{lang}{suffix}"
    own = own[adapted | (own["adapted"] == "")].assign(system=own["base"].where(~adapted, own["adapted"]))
    found = own.pivot_table(index="seed", columns="system", values="value").reindex(columns=SYSTEMS)
    return found.assign(score=found.max(axis=1), task=task).set_index("task", append=True)


@finding(
    "gsw-category",
    paper=PAPER,
    where="figure 2",
    says="Swiss German is easy: mBERT parses it better than a BiLSTM",
    sentence="If mBERT outperforms the strong BiLSTM baseline, we consider the language Easy […] Swiss German is Easy",
    holds="mbert > bilstm",
)
def swiss_german(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    return systems(scores, config, *unseen(config, "gsw"))


@finding(
    "wo-category",
    paper=PAPER,
    where="figure 2",
    says="Wolof is intermediate: mBERT parses it better than a BiLSTM only after MLM on its text",
    sentence="If mBERT does not outperform the strong BiLSTM baselines, but outperforms it after MLM fine-tuning, we "
    "consider the Language Intermediate […] Wolof is Intermediate",
    holds="bilstm > mbert and mlm > bilstm",
)
def wolof(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    return systems(scores, config, *unseen(config, "wo"))


@finding(
    "ug-category",
    paper=PAPER,
    where="figure 2",
    says="Uyghur is hard: mBERT parses it worse than a BiLSTM, even after MLM on its text",
    sentence="If mBERT fails in both settings we consider the language Hard. […] Uyghur is Hard",
    holds="bilstm > mbert and bilstm > mlm",
)
def uyghur(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    return systems(scores, config, *unseen(config, "ug"))


@finding(
    "translit-effect",
    paper=PAPER,
    where="figure 3",
    says="In Latin script mBERT parses Uyghur much better, before and after MLM on its text",
    sentence="For more distant languages written in a different script, transliteration is highly impactful",
    # More than what align-predict calls a moderate change.
    holds="mbert > 3.5 and mlm > 3.5",
)
def uyghur_in_latin_script(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    unseen(config, "ug")
    if task_of(config, "ug") not in in_latin(config).get("ug", ()):
        raise NotRun("talk.transliterated has no parsing of Uyghur")
    original, latin = (systems(scores, config, "ug", suffix) for suffix in ("", "+latn"))
    best = original["score"].combine(latin["score"], max)
    return (latin - original)[["mbert", "mlm"]].assign(score=best)


@finding(
    "related-script",
    paper=PAPER,
    where="figure 2",
    says="mBERT beats a BiLSTM in unseen languages that have a large relative of the same script",
    sentence="Languages related to High-Resource Languages written in the same script can successfully be used with "
    "Multilingual LMs",
    each="language",
    holds="best > bilstm",
)
def relatives_in_one_script(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    tables = {}
    # Germanic, and English Pidgin (table 3); Swiss German is a finding of its own.
    for lang in unseen(config, "fo", "pcm"):
        table = systems(scores, config, lang)
        means = table[["mbert", "mlm"]].mean()
        tables[lang] = table.assign(best=table[means.idxmax()] if means.notna().any() else means["mbert"])
    return pd.concat(tables, names=["language"]).reorder_levels(["seed", "language", "task"])
