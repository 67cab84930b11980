"""Which sets a fine-tuned model is trained, selected and tested on, and which trials decide its settings.

Test sets depend on the model alone, not on the table that asks: every model is evaluated once, on all of its sets.
"""

from dataclasses import replace

from crossalign.catalog.addresses import Adjustment, Tuned, parse_adaptation, trial_init
from crossalign.catalog.labelled import labelled
from crossalign.catalog.sets import DataSet
from crossalign.runtime.errors import UserError
from crossalign.tasks.declared import TASKS

KINDS = {name: task.data for name, task in TASKS.items()}

# Sets of `anc` and `adjust` that are trained on alone, and what their models are developed on.
_DEV = {("nli", "multinli_en"): "xnli_en", ("nli", "mix_en"): "xnli_en"}


def training_sets(config: dict, run: Tuned) -> dict[str, DataSet]:
    """The training set and, where the preset selects the best epoch or starts again after a bad one, the dev set."""
    kind = KINDS[run.task]
    sets = {"train": DataSet(kind, run.source, "train")}
    values = preset(config, run.preset)
    if values["selection"] == "best" or values.get("restart_below") is not None:
        sets["dev"] = DataSet(kind, _DEV.get((kind, run.source), run.source), "dev")
    return sets


def preset(config: dict, name: str) -> dict:
    """The hyper-parameters of a preset: the defaults and what it changes."""
    return config["finetune"]["defaults"] | config["finetune"][name]


def evaluation_sets(config: dict, run: Tuned) -> list[DataSet]:
    """Every set that the model is evaluated on, sorted."""
    paper = run.preset.removesuffix(run.task).rstrip("-")
    if run.init.startswith("grid-"):
        chosen = [DataSet(KINDS[run.task], run.source, "dev")]
    elif paper == "unseen" or "+" in run.source:
        chosen = [DataSet(KINDS[run.task], run.source, "test")]
    elif paper in ("", "anc", "adjust") and (own := labelled(config, DataSet(KINDS[run.task], run.source, "train"))):
        chosen = own.tests()
    elif paper == "anc":
        chosen = [DataSet("nli", f"xnli_{lang}", "dev") for lang in config["anc"]["xnli_languages"]]
    elif paper == "adjust":
        chosen = _adjust_sets(config, run)
    elif paper == "":
        chosen = _align_predict_sets(config, run)
    else:
        raise UserError(f"no test sets are declared for the preset '{run.preset}'")
    return sorted(set(chosen))


def ner_sentences(config: dict, data: DataSet) -> int | None:
    """How many sentences of an NER set are kept at most: all of what is trained on."""
    return None if data.split == "train" else config["ner_sentences"]


def having(config: dict, key: str, task: str) -> list[str]:
    """The `sources` or target `languages` of `align-predict` that have data for a task."""
    paper = config["align-predict"]
    without = paper["lacking"][key].get(task, ())
    return [lang for lang in paper[key] if lang not in without]


def bases(config: dict, paper: str = "align-predict") -> list[str]:
    """The model of a paper, or its several pretrainings."""
    base = config[paper]["base"]
    return [base] if isinstance(base, str) else base


def base_of(config: dict, seed: int, paper: str = "align-predict") -> str:
    """The model that a seed of a paper starts from: the pretrainings take turns."""
    names, seeds = bases(config, paper), adjust_seeds(config) if paper == "adjust" else config["seeds"]
    return names[seeds.index(seed) % len(names)] if seed in seeds else names[0]


def _align_predict_sets(config: dict, run: Tuned) -> list[DataSet]:
    paper, languages = config["align-predict"], having(config, "languages", run.task)
    if run.task == "ner":
        sets = [DataSet("ner", f"wikiann_{lang}", "test") for lang in languages]
        if run.source == "wikiann_en":
            # Table 2: newswire; table 5: the dev set beside the test set.
            sets += [DataSet("ner", name, "test") for name in paper["domains"]["ner"]]
            sets.append(DataSet("ner", "wikiann_en", "dev"))
        elif run.source.removeprefix("wikiann_") not in languages:
            sets.append(DataSet("ner", run.source, "test"))
        return sets
    if run.source == paper["domains"]["train"]:
        return [DataSet("trees", name, "test") for name in paper["domains"]["test"]]
    sets = [DataSet("trees", paper["test_treebanks"].get(lang, f"{lang}_pud"), "test") for lang in languages]
    if run.source == paper["treebanks"]["en"]:
        sets += [DataSet("trees", run.source, split) for split in ("dev", "test")]
        sets += [DataSet("trees", name, "test") for name in paper["own_treebanks"].values()]
    return sets


def adjust_seeds(config: dict) -> list[int]:
    """The seeds of `adjust`: its own, or those of the run."""
    return config["adjust"]["seeds"] or config["seeds"]


# TyDi QA has Russian, MLQA has not.
_TYDIQA = ("ru",)


def _adjust_sets(config: dict, run: Tuned) -> list[DataSet]:
    """The original model is tested in all languages, an adjusted one in its own."""
    _, plus, name = run.model.partition("+")
    made = parse_adaptation(name) if plus else None
    languages = [made.lang] if isinstance(made, Adjustment) else config["adjust"]["languages"]
    sets = []
    for lang in languages:
        if run.task == "nli":
            sets += [DataSet("nli", f"{name}_{lang}", "test") for name in ("xnli", "xnlimixed")]
        elif run.task == "ner":
            sets.append(DataSet("ner", f"wikiann_{lang}", "test"))
        elif run.source.startswith("squadmt_"):
            if run.source == f"squadmt_{lang}":
                sets.append(DataSet("qa", f"mlqa_{lang}", "test"))
        else:
            sets += [data for data in _qa_sets(lang) if data.family in config["adjust"]["qa"]]
    if run.task == "qa" and run.source == config["adjust"]["trained_on"]["qa"]:
        sets.append(DataSet("qa", "squad_en", "dev"))
    return sets


def _qa_sets(lang: str) -> list[DataSet]:
    """Question and paragraph in the language, and each of them in English."""
    families = ("xquad",) if lang in _TYDIQA else ("xquad", "mlqa")
    forms = (lang, f"{lang}_en", f"en_{lang}")
    sets = [DataSet("qa", f"{family}_{form}", "test") for family in families for form in forms]
    return sets + [DataSet("qa", f"tydiqa_{lang}", "dev")] * (lang in _TYDIQA)


def trials_of(config: dict, run: Tuned) -> list[Tuned]:
    """The trials behind a fine-tuning; none where its settings are those of its preset.

    Where `align-predict.search_per_init` asks for it (footnote 1 and A.1.1), batch size and learning rate are searched
    for every initialisation: a fine-tuning takes the settings of the trial with the best score on the source's dev
    set. The search has one seed, the first; all seeds of an initialisation then have the same settings.
    """
    paper = config["align-predict"]
    wanted = paper["search_per_init"]
    whole = run.init == "ref" or run.init.startswith("random-")
    if not wanted or not whole or run.preset not in ("parsing", "pos", "ner") or run.model not in bases(config):
        return []
    own = preset(config, run.preset)
    given, seed = paper["grid"] if wanted is True else wanted, config["seeds"][0]
    return [
        replace(run, model=base_of(config, seed), init=trial_init(batch, rate, run.init), seed=seed)
        for batch in given.get("batch", [own["batch"]])
        for rate in given.get("learning_rate", [own["learning_rate"]])
    ]
