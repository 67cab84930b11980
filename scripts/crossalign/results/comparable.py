"""Whether a run measures what the paper did: in the same languages, on the same data sets."""

from collections.abc import Callable, Iterable
from functools import cache

from crossalign.catalog.config import merged
from crossalign.catalog.sets import DataSet
from crossalign.results.names import language


@cache
def papers_config() -> dict:
    """The config of the papers at full scale."""
    return merged([])


def other_sets(config: dict, measured_on: Callable[[dict], Iterable[DataSet]]) -> str:
    """In words, languages first; empty where a number is measured on the paper's sets and no other.

    `measured_on` finds in a config the sets that a number depends on, those that a model was trained on included.
    """
    ours, theirs = (list(measured_on(each)) for each in (config, papers_config()))
    spoken, printed = ([lang for data in sets for lang in data.languages] for sets in (ours, theirs))
    parts = {"without": [lang for lang in printed if lang not in spoken]}
    parts |= {"with": [lang for lang in spoken if lang not in printed]}
    languages = [f"{word} {', '.join(map(language, dict.fromkeys(langs)))}" for word, langs in parts.items() if langs]
    # A set of a language that the paper has not is told by its language.
    replaced = dict.fromkeys(data.name for data in ours if data not in theirs and {*data.languages} <= {*printed})
    told = {"languages": "; ".join(languages), "data sets": ", ".join(replaced)}
    return "; ".join(f"other {what} than the paper's: {which}" for what, which in told.items() if which)
