"""Which sets a fine-tuned model is trained, selected and tested on.

Test sets depend on the model alone, not on the table that asks: every model is evaluated once, on all of its sets.
"""

from crossalign.catalog.addresses import Adjustment, Tuned, parse_adaptation
from crossalign.catalog.sets import DataSet
from crossalign.runtime.errors import UserError
from crossalign.tasks import declared

KINDS = {name: task.data for name, task in declared().items()}


def training_sets(config: dict, run: Tuned) -> dict[str, DataSet]:
    """The training set and, where the recipe selects the best epoch, the dev set."""
    kind = KINDS[run.task]
    sets = {"train": DataSet(kind, run.source, "train")}
    if recipe(config, run.recipe)["selection"] == "best":
        sets["dev"] = DataSet(kind, run.source, "dev")
    return sets


def recipe(config: dict, name: str) -> dict:
    """The hyper-parameters of a recipe: the defaults and what it changes."""
    return config["finetune"]["defaults"] | config["finetune"][name]


def evaluation_sets(config: dict, run: Tuned) -> list[DataSet]:
    """Every set that the model is evaluated on, sorted."""
    study = run.recipe.removesuffix(run.task).rstrip("-")
    if run.init.startswith("grid-"):
        chosen = [DataSet(KINDS[run.task], run.source, "dev")]
    elif study == "unseen" or "+" in run.source:
        chosen = [DataSet(KINDS[run.task], run.source, "test")]
    elif study == "anc":
        chosen = [DataSet("nli", f"xnli_{lang}", "dev") for lang in config["anc"]["xnli_languages"]]
    elif study == "adjust":
        chosen = _adjust_sets(config, run)
    elif study == "":
        chosen = _align_predict_sets(config, run)
    else:
        raise UserError(f"no test sets are declared for the recipe '{run.recipe}'")
    return sorted(set(chosen))


def _align_predict_sets(config: dict, run: Tuned) -> list[DataSet]:
    paper = config["align-predict"]
    if run.task == "ner":
        sets = [DataSet("ner", f"wikiann_{lang}", "test") for lang in paper["languages"]]
        if run.source == "wikiann_en":
            # Table 2: newswire; table 5: the dev set beside the test set.
            sets += [DataSet("ner", name, "test") for name in paper["domains"]["ner"]]
            sets.append(DataSet("ner", "wikiann_en", "dev"))
        elif run.source.removeprefix("wikiann_") not in paper["languages"]:
            sets.append(DataSet("ner", run.source, "test"))
        return sets
    if run.source == paper["domains"]["train"]:
        return [DataSet("trees", name, "test") for name in paper["domains"]["test"]]
    sets = [DataSet("trees", paper["test_treebanks"].get(lang, f"{lang}_pud"), "test") for lang in paper["languages"]]
    if run.source == paper["treebanks"]["en"]:
        sets += [DataSet("trees", run.source, split) for split in ("dev", "test")]
        sets += [DataSet("trees", name, "test") for name in paper["own_treebanks"].values()]
    return sets


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
    if run.source == "squad_en":
        sets.append(DataSet("qa", "squad_en", "dev"))
    return sets


def _qa_sets(lang: str) -> list[DataSet]:
    """Question and paragraph in the language, and each of them in English."""
    families = ("xquad",) if lang in _TYDIQA else ("xquad", "mlqa")
    forms = (lang, f"{lang}_en", f"en_{lang}")
    sets = [DataSet("qa", f"{family}_{form}", "test") for family in families for form in forms]
    return sets + [DataSet("qa", f"tydiqa_{lang}", "dev")] * (lang in _TYDIQA)
