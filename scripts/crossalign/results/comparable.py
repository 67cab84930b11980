"""Whether a run measures what the paper did: in the same languages, on the same data sets."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from crossalign.catalog.config import merged
from crossalign.catalog.sets import DataSet
from crossalign.results.names import language

OTHER_LANGUAGES = "other languages than the paper's"


@cache
def papers_config() -> dict:
    """The config of the papers at full scale."""
    return merged([])


def listed(config: dict, key: str) -> list[str]:
    """The languages at a place in the config."""
    study, name = key.split(".")
    return config[study][name]


def other_languages(config: dict, over: str | Callable[[dict], Sequence[str]]) -> str:
    """In words; empty where `over` (`anc.norm_languages`) are all of the paper's languages and no other."""
    return _differing(*(over(each) if callable(over) else listed(each, over) for each in (config, papers_config())))


def other_sets(config: dict, measured_on: Callable[[dict], Iterable[DataSet]]) -> str:
    """In words, languages first; empty where a number is measured on the paper's sets and no other.

    `measured_on` finds in a config the sets that a number depends on, those that a model was trained on included.
    """
    ours, theirs = (list(measured_on(each)) for each in (config, papers_config()))
    spoken, printed = ([lang for data in sets for lang in data.languages] for sets in (ours, theirs))
    # A set of a language that the paper has not is told by its language.
    replaced = dict.fromkeys(data.name for data in ours if data not in theirs and {*data.languages} <= {*printed})
    told = f"other data sets than the paper's: {', '.join(replaced)}" if replaced else ""
    return "; ".join(filter(None, (_differing(spoken, printed), told)))


def _differing(ours: Sequence[str], theirs: Sequence[str]) -> str:
    parts = {
        "without": [lang for lang in theirs if lang not in ours],
        "with": [lang for lang in ours if lang not in theirs],
    }
    told = [f"{word} {', '.join(map(language, dict.fromkeys(langs)))}" for word, langs in parts.items() if langs]
    return f"{OTHER_LANGUAGES}: {'; '.join(told)}" if told else ""
