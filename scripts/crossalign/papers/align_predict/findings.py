"""The findings of `align-predict`: what re-initialised layers do at home and elsewhere, where languages are alike, and
how that goes with transfer."""

import math
from collections.abc import Sequence

import pandas as pd

from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import KINDS, having
from crossalign.papers.align_predict.items import PAPER, train_set
from crossalign.papers.align_predict.random_init import others, own_set, tested_on
from crossalign.results.comparable import papers_config
from crossalign.results.findings import printed as print_of
from crossalign.results.findings.finding import NotRun
from crossalign.results.findings.finding import finding as any_finding
from crossalign.results.findings.shapes import level, peak
from crossalign.results.frames import set_key
from crossalign.results.names import METRICS
from crossalign.results.published import published

TASKS = ("parsing", "pos", "ner")
TABLES = ("table6", "table7", "table8")
OWN = ("task", "target", "split")
SHARP = (
    "For all tasks, we observe sharp drops in the cross-language performance at the lower layers of the model but "
    "only moderate drops in the same-language performance."
)
HARMLESS = "applying RANDOM-INIT to the upper layers does not harm same-language and cross-language performances"
DOMAINS = (
    "For all analyzed domains (Web, News, Literature, etc.) applying RANDOM-INIT to the two first layers of the "
    "models leads to very moderate drops […] The trends are similar for all the domains and tasks we tested on."
)
RANK = (
    "We find that the cross-lingual similarity correlates significantly with the cross-lang gap for all three tasks "
    "[…] The spearman correlation for the fine-tuned models are 0.76, 0.75 and 0.47 for parsing, POS and NER, "
    "respectively."
)
# Losses above two points are the first that the paper's tables colour.
LOSS, NO_HARM = "elsewhere < -2 and elsewhere < home", "home > -2 and elsewhere > -2"


def finding(id: str, where: str, says: str, sentence: str, holds: str, **told):
    return any_finding(id, paper=PAPER, where=where, says=says, sentence=sentence, holds=holds, **told)


# What re-initialised layers do to scores.


def table1(layers: str, *places: tuple[str, str], apart: bool = False):
    """The means that the paper prints and speaks of, by task and source; they are not those of its own rows."""

    def means() -> dict[tuple[str, str], float]:
        found = {}
        for task, source in places:
            keys = {"task": task, "source": source, "layers": layers}
            home, elsewhere = (
                published(f"{PAPER}/table1").find(keys | {"target": target}).number for target in (source, "X")
            )
            group = f"{task} {source}" if apart else ""
            told = {"home": home, "elsewhere": elsewhere, "elsewhere - home": elsewhere - home}
            found |= {(group, name): number for name, number in told.items()}
        return found

    return means


def scored(
    scores: pd.DataFrame, config: dict, task: str, source: str, sets: Sequence[DataSet], train: str | None = None
) -> pd.DataFrame:
    """Scores of the models of one task and source, a column per initialisation; rows are seed and test set."""
    chosen = scores[
        (scores["task"] == task)
        & (scores["train"] == (train or train_set(config, task, source)))
        & (scores["base"] == "mbert")
        & (scores["adapted"] == "")
        & (scores["metric"] == METRICS[task])
        & scores["set"].isin([set_key(data) for data in sets])
    ]
    table = chosen.pivot_table(index=["seed", "target", "set"], columns="init", values="value")
    return table if "ref" in table else table.assign(ref=math.nan)


def change(table: pd.DataFrame, init: str) -> pd.Series:
    """What an initialisation changes, each seed and set against its own REF."""
    return table[init] - table["ref"] if init in table else table["ref"] * math.nan


def home_and_elsewhere(change: pd.Series, ref: pd.Series, home: pd.Series) -> pd.DataFrame:
    """A change and the REF scores where `home` is true, and elsewhere."""
    found = pd.DataFrame({"home": change.where(home), "elsewhere": change.where(~home)})
    return found.assign(score_home=ref.where(home), score_elsewhere=ref.where(~home))


def losses(scores: pd.DataFrame, config: dict, task: str, source: str, init: str) -> pd.DataFrame:
    """What an initialisation changes in the source language and in the others, on the sets of tables 6 to 8."""
    languages = [source, *others(config, task, source)]
    table = scored(scores, config, task, source, [tested_on(config, task, lang) for lang in languages])
    at_home = pd.Series(table.index.get_level_values("target") == source, table.index)
    return home_and_elsewhere(change(table, init), table["ref"], at_home)


def lowest(config: dict) -> str:
    """The lowest pair of layers, 1-2 of twelve."""
    return f"random-{config[PAPER]['layer_pairs'][0]}"


def drop(task: str):
    """A finding's function: what random layers 1-2 do to a task learnt from English."""
    return lambda scores, config: losses(scores, config, task, "en", lowest(config))


def upper(task: str):
    """The same of the highest pair, 11-12 of twelve."""
    return lambda scores, config: losses(scores, config, task, "en", f"random-{config[PAPER]['layer_pairs'][-1]}")


finding(
    "drop-en-parse",
    "table 6",
    "Random layers 1-2: parsing from English loses much more elsewhere than in English",
    "the parsing experiment with English as the source language, results in a performance drop on English of only "
    "0.96 points (EN-EN), when randomly-initializing layers 1 and 2. However, it leads to an average drop of 15.77 "
    "points on other languages (EN-X).",
    LOSS,
    task="parsing",
    printed=table1("1-2", ("parsing", "en")),
)(drop("parsing"))
finding(
    "drop-en-pos",
    "table 7",
    "Random layers 1-2: POS tagging from English loses much more elsewhere than in English",
    SHARP,
    LOSS,
    task="pos",
    printed=table1("1-2", ("pos", "en")),
)(drop("pos"))
finding(
    "drop-en-ner",
    "table 8",
    "Random layers 1-2: NER from English loses much more elsewhere than in English",
    SHARP,
    LOSS,
    task="ner",
    printed=table1("1-2", ("ner", "en")),
)(drop("ner"))


@finding(
    "drop-ru-ar",
    "table 6, table 7, table 8",
    "Random layers 1-2: every task learnt from Russian or Arabic, too, loses more elsewhere",
    SHARP,
    LOSS,
    each="task source",
    printed=table1("1-2", *((task, source) for task in TASKS for source in ("ru", "ar")), apart=True),
)
def from_russian_and_arabic(scores, config):
    """The same from the other sources."""
    tables = {
        (task, source): losses(scores, config, task, source, lowest(config))
        for task in TASKS
        for source in having(config, "sources", task)
        if source != "en"
    }
    return stacked(tables, ["task", "source"])


finding(
    "upper-en-parse",
    "table 6",
    "Random layers 11-12 do no harm to parsing, neither in English nor elsewhere",
    "applying RANDOM-INIT to the upper layers does not harm same-language and cross-language performances (e.g. […] "
    "the performance slightly decreases by 0.09 points in the same-language while it increases by 1.00 in the cross-"
    "language case).",
    NO_HARM,
    task="parsing",
    printed=table1("11-12", ("parsing", "en")),
)(upper("parsing"))
finding(
    "upper-en-pos",
    "table 7",
    "Random layers 11-12 do no harm to POS tagging, neither in English nor elsewhere",
    HARMLESS,
    NO_HARM,
    task="pos",
    printed=table1("11-12", ("pos", "en")),
)(upper("pos"))
finding(
    "upper-en-ner",
    "table 8",
    "Random layers 11-12 do no harm to NER, neither in English nor elsewhere",
    HARMLESS,
    NO_HARM,
    task="ner",
    printed=table1("11-12", ("ner", "en")),
)(upper("ner"))


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
    english = pd.Series(table.index.get_level_values("target") == "en", table.index)
    return home_and_elsewhere(change(table, lowest(config)), table["ref"], english)


finding(
    "domain-parse",
    "table 2",
    "It is the language, not the domain: random layers 1-2 cost parsing more in French than in any English domain",
    DOMAINS,
    LOSS,
    task="parsing",
)(lambda scores, config: domain_losses(scores, config, "parsing"))


@finding(
    "domain-pos-ner",
    "table 2",
    "POS tagging and NER, too: it is the language, not the domain",
    DOMAINS,
    LOSS,
    each="task",
)
def domains_of_taggers(scores, config):
    """POS and NER."""
    return stacked({task: domain_losses(scores, config, task) for task in ("pos", "ner")}, ["task"])


@finding(
    "sets-lower",
    "table 5",
    "Other sets of lower layers cost more elsewhere than in English, too",
    "The rest of the results, which exhibit similar trends, can be found in the Appendix (Table 5).",
    "elsewhere < home",
    each="task",
)
def other_lower_sets(scores, config):
    """Sets that lie in the lowest third (1, 2, 1-3 and 1-4 of twelve) and in no other table."""
    pairs = config[PAPER]["layer_pairs"]
    third = int(pairs[-1].split("-")[-1]) / 3
    sets = [layers for layers in config[PAPER]["layer_sets"] if layers not in (*pairs, "all")]
    known = [layers for layers in sets if int(layers.split("-")[-1]) <= third]
    tables = {}
    for task in TASKS:
        sets = [own_set(config, task, lang) for lang in ("en", *config[PAPER]["own_treebanks"])]
        table = scored(scores, config, task, "en", sets)
        english = pd.Series(table.index.get_level_values("target") == "en", table.index)
        for layers in known:
            ref = table["ref"]
            tables[task, layers] = home_and_elsewhere(change(table, f"random-{layers}"), ref, english)
    return stacked(tables, ["task", "layers"])


# Where languages are alike.


def alike(similarity: pd.DataFrame, config: dict, init: str = "ref", languages: str = "similarity_languages"):
    """CKA of English with the languages whose curves are drawn: of the pretrained model, and of tasks from English."""
    kept = similarity[
        (similarity["measure"] == config["similarity"]["index"])
        & (similarity["corpus"] == "pud")
        & (similarity["base"] == "mbert")
        & (similarity["adapted"] == "")
        & similarity["language"].isin(config[PAPER][languages])
    ]
    return kept[kept["task"] == ""], kept[kept["task"].isin(TASKS) & (kept["init"] == init) & (kept["source"] == "en")]


@finding(
    "cka-peak-pretrained",
    "figure 1, figure 5",
    "The pretrained model's languages are most alike in its middle layers",
    "Interestingly, the same trend is also observed in the pretrained model, suggesting that the fine-tuning step "
    "preserves the multilingual alignment.",
    "rise > 0 and fall > 0",
    each="language",
    most=True,
)
def pretrained_peak(similarity, config):
    """CKA of the pretrained model."""
    return peak(alike(similarity, config)[0], ["language"])


@finding(
    "cka-peak-tuned",
    "figure 1, figure 5",
    "After fine-tuning, too, languages are most alike in the middle layers, whatever the task",
    "We observe the same trends across all languages (cf. Figure 5). This demonstrates that the fine-tuned model "
    "creates similar representations regardless of the language and task, and hints on an alignment that occurs in "
    "the lower part of the model.",
    "rise > 0 and fall > 0",
    each="task language",
    most=True,
)
def tuned_peak(similarity, config):
    """CKA of the fine-tuned models."""
    return peak(alike(similarity, config)[1], ["task", "language"])


@finding(
    "cka-preserved",
    "figure 1, figure 5",
    "Fine-tuning keeps the alignment of the lower layers",
    "the lower layers are in charge of aligning representations across languages and that this cross-lingual "
    "alignment learned during pretraining is preserved after fine-tuning.",
    "kept > 0.8",
    each="task",
)
def lower_layers_kept(similarity, config):
    """The share of the pretrained model's CKA in layers 3-6 of twelve that is left; lower ones are near the words."""
    pretrained, tuned = alike(similarity, config)
    depth = pretrained["layer"].max()
    lower = (depth / 4, depth / 2)
    before = level(pretrained, *lower, by=["model", "language"]).groupby(["model", "language"]).mean()
    after = level(tuned, *lower, by=["task", "model", "language"])
    return (after / before).rename("kept").to_frame().reorder_levels(["seed", "task", "model", "language"])


@finding(
    "cka-lower-reinit",
    "figure 6, figure 7, figure 8",
    "With random layers 1-2 languages are less alike in all layers above",
    "when we randomly-initialize the lower part of the model, there is no alignment: the similarity between the "
    "source and target languages decreases. We observe the same trend for all other languages and tasks and report "
    "it in the Appendix in Figures 6-8.",
    "change < 0",
    each="task",
)
def random_lower_layers(similarity, config):
    """The mean CKA of all layers above them against REF."""
    by, random_layers = ["task", "language"], lowest(config)
    first = int(random_layers.split("-")[-1]) + 1
    ref, random = (level(alike(similarity, config, init)[1], first, 1000, by) for init in ("ref", random_layers))
    return (random - ref).rename("change").to_frame()


# Similarity and transfer.


def transfer(scores: pd.DataFrame, similarity: pd.DataFrame, config: dict, task: str) -> pd.DataFrame:
    """Minus the gap to English of every language, and its mean similarity with English over the layers."""
    languages = others(config, task, "en")
    table = scored(scores, config, task, "en", [tested_on(config, task, lang) for lang in ["en", *languages]])
    by_language = table["ref"].unstack("target").groupby(level="seed").mean().reindex(columns=["en", *languages])
    score = by_language[languages].stack().rename_axis(["seed", "language"])
    gap = by_language[languages].sub(by_language["en"], axis=0).stack().rename_axis(["seed", "language"])
    tuned = alike(similarity, config, languages="languages")[1]
    near = level(tuned[tuned["task"] == task], 1, 1000, ["language"])
    found = pd.DataFrame({"transfer": gap, "similarity": near}).dropna()
    return found.assign(score_elsewhere=score.reindex(found.index))


for _task, _rho, _word in (("parsing", 0.76, "Parsing"), ("pos", 0.74, "POS tagging"), ("ner", 0.47, "NER")):
    finding(
        f"spearman-{_task}",
        "table 4",
        f"{_word} transfers better to languages that are more like English in the fine-tuned model",
        RANK,
        "rho(similarity, transfer) > 0",
        task=_task,
        printed=lambda rho=_rho: {("", "rho(similarity, transfer)"): rho},
    )(lambda scores, similarity, config, task=_task: transfer(scores, similarity, config, task))


def printed() -> dict[str, pd.DataFrame]:
    """Tables 6 to 8, 2 and 5 as scores; what two tables print counts once."""
    config = papers_config()
    sets = {name: lambda row: set_key(tested_on(config, row["task"], row["target"])) for name in TABLES}
    sets |= {"table2": domain_set, "table5": lambda row: set_key(own_set(config, *(row[key] for key in OWN)))}
    rows = [row | {"table": name} for name, of in sets.items() for row in print_of.random_init(f"{PAPER}/{name}", of)]
    for row in rows:
        # The models of table 2 have a training set of their own but for NER.
        alone = row.pop("table") == "table2" and row["task"] != "ner"
        row["train"] = config[PAPER]["domains"]["train"] if alone else train_set(config, row["task"], row["source"])
    frames = print_of.frames(rows)
    return frames | {"scores": frames["scores"].drop_duplicates(["task", "train", "set", "init"])}


def domain_set(row: dict[str, str]) -> str:
    """`en lexnorm` and `fr_partut test (110 sentences)` are what table 2 calls its sets."""
    name = row["eval_data"].removesuffix(" test").partition(" test ")[0].replace(" ", "_")
    return f"{KINDS[row['task']]}/{name}/test"
