"""Items of `adjust`: cross-lingual adjustment, with and without continual learning."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from crossalign.catalog.addresses import Adapted, Adjustment, Base, Tuned, continual_init
from crossalign.catalog.items import Item, Needs, needs, no_inputs
from crossalign.catalog.sets import pool_set
from crossalign.catalog.targets import adjust_seeds, base_of

PAPER = "adjust"
# Where a config of an earlier run, of which a page is made again, lacks the key.
TRAINED_ON = {"nli": "multinli_en", "ner": "wikiann_en", "qa": "squad_en"}


def adjustment(config: dict, lang: str, **changes: str) -> Adjustment:
    """The main setting for a language, with one thing changed for an ablation."""
    paper = config[PAPER]
    setting = {"pairs": paper["pairs"], "aggregation": paper["aggregation"], "tokens": paper["tokens"]}
    return Adjustment(lang, **(setting | changes))


def tuned(
    config: dict,
    tasks: Iterable[str],
    made: Adjustment | None,
    init: str = "ref",
    base: str | None = None,
    seeds: Iterable[int] | None = None,
) -> Iterator[Tuned]:
    """Fine-tunings of the original model (`made` is None) or of an adjusted one, all seeds unless some are given."""
    trained_on = TRAINED_ON | config[PAPER].get("trained_on", {})
    for task in tasks:
        for seed in seeds or adjust_seeds(config):
            start = base or base_of(config, seed, PAPER)
            yield Tuned(start if made is None else f"{start}+{made}", f"adjust-{task}", trained_on[task], init, seed)


def further_scopes(config: dict) -> list[str]:
    """Other readings of equation 2 that the tables show beside the main one."""
    # A config of an earlier run, of which a page is made again, lacks the key.
    return config[PAPER].get("further_alpha_scopes") or []


def arms(task: str):
    """The arms: original, adjusted, and adjusted with continual learning, once for every reading of alpha."""

    def declared(config: dict) -> Needs:
        runs = set(tuned(config, [task], None))
        for lang in config[PAPER]["languages"]:
            made = adjustment(config, lang)
            for init in ("ref", *map(continual_init, (None, *further_scopes(config)))):
                runs |= set(tuned(config, [task], made, init))
        return needs(runs)

    return declared


def ablation(key: str, setting: str):
    """All tasks, original and adjusted, with one setting of the adjustment varied as `key` of the config says."""

    def declared(config: dict) -> Needs:
        study = config[PAPER][key]
        tasks = config[PAPER]["tasks"]
        runs = set(tuned(config, tasks, None))
        for value in study.get("values", study.get("pairs")):
            runs |= set(tuned(config, tasks, adjustment(config, study["lang"], **{setting: value})))
        return needs(runs)

    return declared


def monolingual_qa(config: dict) -> Needs:
    """SQuAD models of the QA table, and models trained on translated SQuAD."""
    paper = config[PAPER]
    runs = set(tuned(config, ["qa"], None))
    for lang in paper["languages"]:
        runs |= set(tuned(config, ["qa"], adjustment(config, lang)))
    for lang in paper["translated"]:
        for made in (None, adjustment(config, lang)):
            runs |= {replace(run, source=f"squadmt_{lang}") for run in tuned(config, ["qa"], made)}
    return needs(runs)


def extended(config: dict) -> Needs:
    """mBERT with a larger Hindi vocabulary."""
    study, tasks = config[PAPER]["extended"], config[PAPER]["tasks"]
    runs = set(tuned(config, tasks, None, base=study["base"]))
    for pairs in study["pairs"]:
        runs |= set(tuned(config, tasks, adjustment(config, study["lang"], pairs=pairs), base=study["base"]))
    return needs(runs)


def histograms(languages: list[str] | None, tasks: list[str] | None):
    """Distances of linked words in every model, first seed; None: all of the config."""

    def declared(config: dict) -> Needs:
        paper, seed = config[PAPER], adjust_seeds(config)[0]
        chosen = [lang for lang in languages or paper["languages"] if lang in paper["languages"]]
        chosen_tasks, base = tasks or paper["tasks"], base_of(config, seed, PAPER)
        runs = {Base(base), *tuned(config, chosen_tasks, None, seeds=[seed])}
        for lang in chosen:
            made = adjustment(config, lang)
            runs |= {Adapted(base, made, seed), *tuned(config, chosen_tasks, made, seeds=[seed])}
            runs |= set(tuned(config, chosen_tasks, made, "continual", seeds=[seed]))
        return needs(runs, [pool_set(config, lang) for lang in chosen])

    return declared


# Their significance marks are tests over single examples.
TESTED = ("scores", "predictions")

ITEMS = [
    Item("table1", "Languages", no_inputs),
    Item("table2", "NLI accuracy", arms("nli"), TESTED),
    Item("table3", "NER F1", arms("ner"), TESTED),
    Item("table4", "QA F1", arms("qa"), TESTED),
    Item("table5", "Gain by number of sentence pairs, Russian", ablation("sizes", "pairs")),
    Item("table6", "Gain by sub-word aggregation, Hindi", ablation("aggregations", "aggregation")),
    Item("table7", "Gain by aligned tokens, Hindi", ablation("token_choices", "tokens")),
    Item("table8", "Monolingual QA", monolingual_qa),
    Item("table9", "Extended mBERT, Hindi", extended),
    Item("figure1", "Distances of related and unrelated words, Hindi, NLI", histograms(["hi"], ["nli"])),
    Item("figure2", "Distances of related and unrelated words, all models", histograms(None, None)),
]
