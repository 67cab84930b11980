"""The findings of `align-predict`: what re-initialised layers do at home and elsewhere, where languages are alike, and
how that goes with transfer."""

from collections.abc import Iterable, Sequence
from functools import partial

import pandas as pd

from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import KINDS, having
from crossalign.papers.align_predict.items import PAPER, train_set
from crossalign.papers.align_predict.random_init import others, own_set, tested_on
from crossalign.results.comparable import papers_config
from crossalign.results.findings.finding import NotRun, register
from crossalign.results.findings.shapes import level, peak
from crossalign.results.findings.views import from_records, select
from crossalign.results.frames import set_key
from crossalign.results.names import METRICS
from crossalign.results.published import published

finding = partial(register, PAPER)
TASKS = ("parsing", "pos", "ner")
# Of a task learnt from English: its name, its table, and what its findings and their claims are called by.
ENGLISH = {
    "parsing": ("parsing", "table 6", "parse", "x-parse"),
    "pos": ("POS tagging", "table 7", "pos", "pos"),
    "ner": ("NER", "table 8", "ner", "ner"),
}
# Losses above two points are the first that the paper's tables colour.
LOSS, NO_HARM = "elsewhere < -2 and elsewhere < home", "home > -2 and elsewhere > -2"
PEAK = "rise > 0 and fall > 0"


# What re-initialised layers do to scores.


def table1(layers: str, places: dict[str, tuple[str, str]]) -> dict[tuple[str, str], float]:
    """The means that the paper prints and speaks of, by task and source; they are not those of its own rows."""
    table, found = published(f"{PAPER}/table1"), {}
    for group, (task, source) in places.items():
        keys = {"task": task, "source": source, "layers": layers}
        home, elsewhere = (table.find(keys | {"target": target}).number for target in (source, "X"))
        told = {"home": home, "elsewhere": elsewhere, "elsewhere - home": elsewhere - home}
        found |= {(group, name): number for name, number in told.items()}
    return found


def scored(
    scores: pd.DataFrame, config: dict, task: str, source: str, sets: Iterable[DataSet], train: str | None = None
) -> pd.DataFrame:
    """Scores of the models of one task and source, a column per initialisation; rows are seed and test set."""
    told = {"task": task, "train": train or train_set(config, task, source), "metric": METRICS[task]}
    own = select(scores, base="mbert", adapted="", set=map(set_key, sets), **told)
    return own.pivot_table(index=["seed", "target", "set"], columns="init", values="value")


def changes(table: pd.DataFrame, init: str, source: str) -> pd.DataFrame:
    """What an initialisation changes, each seed and set against its own REF, and REF: in the source language and
    elsewhere."""
    ref, own = (table.reindex(columns=["ref", init])[name] for name in ("ref", init))
    home = table.index.get_level_values("target") == source
    found = pd.DataFrame({"home": (own - ref).where(home), "elsewhere": (own - ref).where(~home)})
    return found.assign(score_home=ref.where(home), score_elsewhere=ref.where(~home))


def random_pair(config: dict, place: int) -> str:
    """The initialisation of a pair of layers: the lowest (place 0) is 1-2 of twelve, the highest (-1) 11-12."""
    return f"random-{config[PAPER]['layer_pairs'][place]}"


def losses(scores: pd.DataFrame, config: dict, task: str, source: str, place: int = 0) -> pd.DataFrame:
    """What a random pair of layers changes on the sets of tables 6 to 8."""
    sets = [tested_on(config, task, lang) for lang in (source, *others(config, task, source))]
    return changes(scored(scores, config, task, source, sets), random_pair(config, place), source)


def of_each_task(prefix: str, says: str, holds: str, layers: str, place: int) -> None:
    """A finding for every task that is learnt from English, of one pair of layers."""
    for task, (name, where, suffix, claim) in ENGLISH.items():
        told = {"where": where, "holds": holds, "task": task, "says": says.format(name), "claim": f"{prefix}-{claim}"}
        printed = partial(table1, layers, {"": (task, "en")})
        finding(f"{prefix}-{suffix}", printed=printed, **told)(partial(losses, task=task, source="en", place=place))


of_each_task("drop-en", "Random layers 1-2: {} from English loses much more elsewhere than in English", LOSS, "1-2", 0)


@finding(
    "drop-ru-ar",
    where="table 6, table 7, table 8",
    claim="drop-en-pos",
    each="task source",
    holds=LOSS,
    printed=lambda: table1("1-2", {f"{task} {lang}": (task, lang) for task in TASKS for lang in ("ru", "ar")}),
)
def from_russian_and_arabic(scores, config):
    """Random layers 1-2: every task learnt from Russian or Arabic, too, loses more elsewhere."""
    sources = {task: [lang for lang in having(config, "sources", task) if lang != "en"] for task in TASKS}
    places = [(task, source) for task in TASKS for source in sources[task]]
    return stacked({place: losses(scores, config, *place) for place in places}, ["task", "source"])


of_each_task("upper-en", "Random layers 11-12 do no harm to {}, neither in English nor elsewhere", NO_HARM, "11-12", -1)


def stacked(tables: dict, names: Sequence[str]) -> pd.DataFrame:
    """Tables one below the other, their keys as index levels after the seed."""
    if not tables:
        raise NotRun("the config has none of what is compared")
    found = pd.concat(tables, names=names)
    return found.reorder_levels(["seed", *[name for name in found.index.names if name != "seed"]])


def domain_losses(scores: pd.DataFrame, config: dict, task: str) -> pd.DataFrame:
    """What layers 1-2 cost on the domains of English and of French."""
    domains = config[PAPER]["domains"]
    names, train = (domains["ner"], None) if task == "ner" else (domains["test"], domains["train"])
    table = scored(scores, config, task, "en", [DataSet(KINDS[task], name, "test") for name in names], train)
    return changes(table, random_pair(config, 0), "en")


@finding("domain-parse", where="table 2", task="parsing", holds=LOSS)
def domains_of_parsing(scores, config):
    """It is the language, not the domain: random layers 1-2 cost parsing more in French than in any English domain."""
    return domain_losses(scores, config, "parsing")


@finding("domain-pos-ner", where="table 2", claim="domain-pos", each="task", holds=LOSS)
def domains_of_taggers(scores, config):
    """POS tagging and NER, too: it is the language, not the domain."""
    return stacked({task: domain_losses(scores, config, task) for task in ("pos", "ner")}, ["task"])


@finding("sets-lower", where="table 5", each="task", holds="elsewhere < home")
def other_lower_sets(scores, config):
    """Other sets of lower layers cost more elsewhere than in English, too."""
    study = config[PAPER]
    *_, last = study["layer_pairs"]
    # Those that lie in the lowest third (1, 2, 1-3 and 1-4 of twelve) and in no other table.
    third = int(last.split("-")[-1]) / 3
    other = [layers for layers in study["layer_sets"] if layers not in (*study["layer_pairs"], "all")]
    known = [layers for layers in other if int(layers.split("-")[-1]) <= third]
    tables = {}
    for task in TASKS:
        sets = [own_set(config, task, lang) for lang in ("en", *study["own_treebanks"])]
        table = scored(scores, config, task, "en", sets)
        tables |= {(task, layers): changes(table, f"random-{layers}", "en") for layers in known}
    return stacked(tables, ["task", "layers"])


# Where languages are alike.


def alike(similarity: pd.DataFrame, config: dict, init: str = "ref", languages: str = "similarity_languages"):
    """CKA of English with the languages whose curves are drawn: of the pretrained model, and of tasks from English."""
    told = {"measure": config["similarity"]["index"], "language": config[PAPER][languages]}
    kept = select(similarity, corpus="pud", base="mbert", adapted="", **told)
    return select(kept, task=""), select(kept, task=TASKS, init=init, source="en")


@finding("cka-peak-pretrained", where="figure 1, figure 5", each="language", most=True, holds=PEAK)
def pretrained_peak(similarity, config):
    """The pretrained model's languages are most alike in its middle layers."""
    return peak(alike(similarity, config)[0], ["language"])


@finding(
    "cka-peak-tuned", where="figure 1, figure 5", claim="cka-peak-layer", each="task language", most=True, holds=PEAK
)
def tuned_peak(similarity, config):
    """After fine-tuning, too, languages are most alike in the middle layers, whatever the task."""
    return peak(alike(similarity, config)[1], ["task", "language"])


@finding("cka-preserved", where="figure 1, figure 5", each="task", holds="kept > 0.8")
def lower_layers_kept(similarity, config):
    """Fine-tuning keeps the alignment of the lower layers.

    The share of the pretrained model's CKA in layers 3-6 of twelve that is left; lower ones are near the words.
    """
    pretrained, tuned = alike(similarity, config)
    depth = pretrained["layer"].max()
    before, after = (
        level(curves, depth / 4, depth / 2, ["task", "model", "language"]) for curves in (pretrained, tuned)
    )
    kept = after / before.groupby(["model", "language"]).mean()
    return kept.to_frame("kept").reorder_levels(["seed", "task", "model", "language"])


@finding("cka-lower-reinit", where="figure 6, figure 7, figure 8", each="task", holds="change < 0")
def random_lower_layers(similarity, config):
    """With random layers 1-2 languages are less alike in all layers above."""
    random = random_pair(config, 0)
    first = int(random.split("-")[-1]) + 1
    after, before = (
        level(alike(similarity, config, init)[1], first, 1000, ["task", "language"]) for init in (random, "ref")
    )
    return (after - before).to_frame("change")


# Similarity and transfer.


def transfer(scores: pd.DataFrame, similarity: pd.DataFrame, config: dict, task: str) -> pd.DataFrame:
    """Minus the gap to English of every language, and its mean similarity with English over the layers."""
    languages = others(config, task, "en")
    table = scored(scores, config, task, "en", [tested_on(config, task, lang) for lang in ("en", *languages)])
    ref = table.reindex(columns=["ref"])["ref"].groupby(level=["seed", "target"]).mean()
    score = ref.unstack("target").reindex(columns=["en", *languages])
    gap = score[languages].sub(score["en"], axis=0)
    tuned = alike(similarity, config, languages="languages")[1]
    near = level(tuned[tuned["task"] == task], 1, 1000, ["language"]).rename_axis(["seed", "target"])
    found = {"transfer": gap.stack(), "similarity": near, "score_elsewhere": score[languages].stack()}
    return pd.DataFrame(found).dropna()


def printed_rho(task: str) -> dict[tuple[str, str], float]:
    """The correlation that the paper prints."""
    found = published(f"{PAPER}/table4").find({"task": task, "model": "fine-tuned"})
    return {("", "rho(similarity, transfer)"): found.number}


for _task, _name in (("parsing", "Parsing"), ("pos", "POS tagging"), ("ner", "NER")):
    finding(
        f"spearman-{_task}",
        where="table 4",
        says=f"{_name} transfers better to languages that are more like English in the fine-tuned model",
        claim=f"spearman-ft-{_task}",
        task=_task,
        holds="rho(similarity, transfer) > 0",
        printed=partial(printed_rho, _task),
    )(partial(transfer, task=_task))


def printed() -> dict[str, pd.DataFrame]:
    """Tables 6 to 8, 2 and 5 as scores; what two tables print counts once."""
    config = papers_config()
    tables = {name: published(f"{PAPER}/{name}").rows for name in ("table6", "table7", "table8", "table2", "table5")}
    rows = pd.DataFrame([row | {"table": name} for name, found in tables.items() for row in found])
    rows = rows.query("value != '' and target != 'X'").astype({"value": float})
    rows["set"] = [printed_set(config, row) for row in rows.to_dict("records")]
    # The models of table 2 have a training set of their own but for NER.
    alone = (rows["table"] == "table2") & (rows["task"] != "ner")
    usual = [train_set(config, task, source) for task, source in zip(rows["task"], rows["source"], strict=True)]
    rows["train"] = pd.Series(usual, rows.index).mask(alone, config[PAPER]["domains"]["train"])
    rows["init"] = rows["layers"].where(rows["layers"] == "ref", "random-" + rows["layers"])
    # What RANDOM-INIT changes is added to REF.
    place = ["table", "task", "source", "set"]
    ref = rows[rows["init"] == "ref"].set_index(place)["value"].rename("ref")
    rows["value"] += rows.join(ref, on=place)["ref"].where(rows["kind"] == "delta", 0.0)
    rows = rows.dropna(subset="value").drop_duplicates(["task", "train", "set", "init"])
    return from_records(rows.assign(base="mbert", model="mbert").to_dict("records"))


def printed_set(config: dict, row: dict[str, str]) -> str:
    """`en lexnorm` and `fr_partut test (110 sentences)` are what table 2 calls its sets."""
    task, target = row["task"], row["target"]
    if row["table"] == "table2":
        name = row["eval_data"].removesuffix(" test").partition(" test ")[0].replace(" ", "_")
        return f"{KINDS[task]}/{name}/test"
    if row["table"] == "table5":
        return set_key(own_set(config, task, target, row["split"]))
    return set_key(tested_on(config, task, target))
