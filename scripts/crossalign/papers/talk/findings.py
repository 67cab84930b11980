"""The findings of `talk`: which unseen languages mBERT learns, and what another script does.

The slides print no numbers for them.
"""

from functools import partial

import pandas as pd

from crossalign.papers.talk.items import PAPER, in_latin, task_of
from crossalign.results.findings.finding import NotRun, register
from crossalign.results.findings.views import from_records, select
from crossalign.results.names import METRICS, language

finding = partial(register, PAPER)
SYSTEMS = ["bilstm", "mbert", "mlm"]


# The bars of the slides have no numbers.
printed = from_records


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
    own = select(scores, preset=f"unseen-{task}", target=lang, metric=METRICS[task])
    own = own[own["set"].str.contains("+latn", regex=False) == bool(suffix)]
    adapted = own["language"] == f"{lang}{suffix}"
    own = own[adapted | (own["adapted"] == "")].assign(system=own["base"].where(~adapted, own["adapted"]))
    found = own.pivot_table(index="seed", columns="system", values="value").reindex(columns=SYSTEMS)
    return found.assign(score=found.max(axis=1), task=task).set_index("task", append=True)


@finding("gsw-category", where="figure 2", holds="mbert > bilstm")
def swiss_german(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    """Swiss German is easy: mBERT parses it better than a BiLSTM."""
    return systems(scores, config, *unseen(config, "gsw"))


@finding("wo-category", where="figure 2", holds="bilstm > mbert and mlm > bilstm")
def wolof(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    """Wolof is intermediate: mBERT parses it better than a BiLSTM only after MLM on its text."""
    return systems(scores, config, *unseen(config, "wo"))


@finding("ug-category", where="figure 2", holds="bilstm > mbert and bilstm > mlm")
def uyghur(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    """Uyghur is hard: mBERT parses it worse than a BiLSTM, even after MLM on its text."""
    return systems(scores, config, *unseen(config, "ug"))


# More than what align-predict calls a moderate change.
@finding("translit-effect", where="figure 3", holds="mbert > 3.5 and mlm > 3.5")
def uyghur_in_latin_script(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    """In Latin script mBERT parses Uyghur much better, before and after MLM on its text."""
    unseen(config, "ug")
    if task_of(config, "ug") not in in_latin(config).get("ug", ()):
        raise NotRun("talk.transliterated has no parsing of Uyghur")
    original, latin = (systems(scores, config, "ug", suffix) for suffix in ("", "+latn"))
    best = original["score"].combine(latin["score"], max)
    return (latin - original)[["mbert", "mlm"]].assign(score=best)


@finding("related-script", where="figure 2", each="language", holds="best > bilstm")
def relatives_in_one_script(scores: pd.DataFrame, config: dict) -> pd.DataFrame:
    """mBERT beats a BiLSTM in unseen languages that have a large relative of the same script."""
    tables = {}
    # Germanic, and English Pidgin (table 3); Swiss German is a finding of its own.
    for lang in unseen(config, "fo", "pcm"):
        table = systems(scores, config, lang)
        means = table[["mbert", "mlm"]].mean()
        tables[lang] = table.assign(best=table[means.idxmax()] if means.notna().any() else means["mbert"])
    return pd.concat(tables, names=["language"]).reorder_levels(["seed", "language", "task"])
