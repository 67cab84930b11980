"""How the languages of a run differ from those of the papers."""

from functools import cache

from crossalign.catalog.config import load
from crossalign.results.names import language


@cache
def papers_config() -> dict:
    """The config of the papers at full scale."""
    return load([])


def other_languages(config: dict, key: str) -> str:
    """In words; empty where the list at `key` (`anc.norm_languages`) has all of the paper's languages and no other."""
    study, name = key.split(".")
    ours, theirs = (
        [lang for lang in each[study][name] if lang not in each[study].get("extra_targets", ())]
        for each in (config, papers_config())
    )
    parts = {
        "without": [lang for lang in theirs if lang not in ours],
        "with": [lang for lang in ours if lang not in theirs],
    }
    told = [f"{word} {', '.join(map(language, found))}" for word, found in parts.items() if found]
    return f"other languages than the paper's: {'; '.join(told)}" if told else ""
