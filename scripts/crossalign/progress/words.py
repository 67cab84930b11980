"""What a job does, in words: `fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)`."""

from collections.abc import Callable, Mapping

from crossalign.catalog.addresses import Adjustment, Run, Tuned, parse, parse_adaptation
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import KINDS
from crossalign.results import names
from crossalign.runtime.errors import UserError

Wildcards = Mapping[str, str]
TARGETS = {"all", "align_predict", "anc", "adjust", "talk", "grid", "data", "download"}
DATA = {"trees": "treebank", "ner": "NER data", "nli": "NLI data", "qa": "QA data", "bitext": "bitext", "text": "text"}
CORPORA = {"pud": "PUD", "xnliext": "extended XNLI"}


def job_words(rule: str, wildcards: Wildcards) -> str:
    """A job in words. A rule without words of its own is told by its name and wildcards."""
    if rule in TARGETS:
        return "collecting the results"
    try:
        if rule.startswith("prepare_"):
            return f"preparing {data_words(rule.removeprefix('prepare_'), wildcards)}"
        return WORDS[rule](wildcards)
    except (KeyError, UserError):
        told = ", ".join(f"{name} {value}" for name, value in wildcards.items())
        return rule.replace("_", " ") + (f" ({told})" if told else "")


def data_words(kind: str, wildcards: Wildcards) -> str:
    """A data set: treebank ru_gsd (train)."""
    name, split = wildcards["name"], wildcards.get("split", "")
    if kind == "parallel":
        return f"{CORPORA.get(name, name)} in {names.language(split)}"
    return f"{DATA[kind]} {name}" + (f" ({split})" if split else "")


def text_words(text: str) -> str:
    """The language of a text: `ug+latn` and `ug.latn` -> Uyghur in Latin script."""
    code, *suffixes = text.replace(".", "+").split("+")
    return names.language(code) + (" in Latin script" if "latn" in suffixes else "")


def model_words(name: str) -> str:
    """A model: mBERT adjusted to Hindi."""
    base, plus, adaptation = name.partition("+")
    if base.startswith("mono-"):
        return f"monolingual model of {text_words(base.removeprefix('mono-'))}"
    if not plus:
        return "BiLSTM" if base == "bilstm" else names.model(base)
    made = parse_adaptation(adaptation)
    if isinstance(made, Adjustment):
        return f"{names.model(base)} adjusted to {names.language(made.lang)}"
    return f"{names.model(base)} after MLM on {text_words(made.text)}"


def task_words(task: str) -> str:
    """A task inside a sentence: parsing, POS."""
    name = names.TASKS[task]
    return name if name.isupper() else name.lower()


def tuning_words(run: Tuned, link: str = "on") -> str:
    """The task of a fine-tuning, its language and its initialisation: POS on Russian, layers 1-2 re-initialised."""
    languages = DataSet(KINDS[run.task], run.source, "train").languages
    told = f"{task_words(run.task)} {link} {' and '.join(map(names.language, languages))}"
    if "+latn" in run.source:
        told += " in Latin script"
    if run.init.startswith("random-"):
        return f"{told}, {names.init(run.init)} re-initialised"
    if run.init.startswith("grid-"):
        batch, rate = run.init.removeprefix("grid-").split("-", 1)
        return f"{told}, batch {batch}, learning rate {rate}"
    return told + (", continual" if run.init == "continual" else "")


def run_words(run: Run) -> str:
    """Any model, also a fine-tuned one."""
    if isinstance(run, Tuned):
        return f"{model_words(run.model)} fine-tuned for {tuning_words(run)}"
    return model_words(run.name)


def tuned_at(wildcards: Wildcards) -> Tuned:
    """The run of a job; UserError where the wildcards are no address."""
    path = "tuned/{model}/{preset}-{source}/{init}/seed{seed}"
    return parse(path.format_map({"model": "bilstm", "init": "ref", **wildcards}))


def finetuning(verb: str, link: str = "on") -> Callable[[Wildcards], str]:
    """Words for a job about one fine-tuned model."""

    def told(wildcards: Wildcards) -> str:
        run = tuned_at(wildcards)
        return f"{verb} {tuning_words(run, link)} ({model_words(run.model)})"

    return told


def adaptation_words(wildcards: Wildcards) -> str:
    """Words for a job that adapts a model to a language."""
    base, made = names.model(wildcards["base"]), parse_adaptation(wildcards["adaptation"])
    if isinstance(made, Adjustment):
        return f"adjusting {base} to {names.language(made.lang)}"
    return f"continuing MLM of {base} on {text_words(made.text)}"


def address(verb: str) -> Callable[[Wildcards], str]:
    """Words for a job that looks into a model, found by its address."""
    return lambda wildcards: f"{verb} {run_words(parse(wildcards['address']))}"


def bitext_words(wildcards: Wildcards) -> str:
    """The languages of a bitext: English and Hindi."""
    languages = DataSet("bitext", wildcards["name"], wildcards["split"]).languages
    return " and ".join(map(names.language, ["en", *languages]))


def item_words(item: str) -> str:
    """A table or figure: `align-predict/table3` -> table 3 of align-predict."""
    paper, _, name = item.partition("/")
    kind = "table" if name.startswith("table") else "figure"
    return f"{kind} {name.removeprefix(kind)} of {paper}"


def new_model_words(name: str) -> str:
    return ("a " if name.startswith("mono-") else "") + model_words(name)


def vocabulary_words(name: str) -> str:
    """A vocabulary of one language, or one with a name."""
    text = name.removeprefix("mono-")
    return f"the vocabulary {name}" if text == name else f"a vocabulary for {text_words(text)}"


def item_at(wildcards: Wildcards) -> str:
    return "making " + item_words("{paper}/{item}".format_map(wildcards))


WORDS: dict[str, Callable[[Wildcards], str]] = {
    "make_world": lambda wildcards: "generating the demo's languages",
    "download_file": lambda wildcards: f"downloading {wildcards['path']}",
    "download_model": lambda wildcards: f"downloading the model {names.model(wildcards['model'])}",
    "align_bitext": lambda wildcards: f"aligning words of {bitext_words(wildcards)}",
    "align_pieces": lambda wildcards: f"aligning word pieces of {bitext_words(wildcards)}",
    "train_vocabulary": lambda wildcards: f"building {vocabulary_words(wildcards['trained'])}",
    "pretrain": lambda wildcards: f"pretraining {new_model_words(wildcards['trained'])}",
    "adjust_model": adaptation_words,
    "adapt_to_text": adaptation_words,
    "finetune": finetuning("fine-tuning"),
    "finetune_random": finetuning("fine-tuning"),
    "evaluate": finetuning("testing", "learnt on"),
    "train_bilstm": finetuning("training"),
    "embed_sentences": address("sentence vectors of"),
    "embed_words": address("word vectors of"),
    "compare_languages": address("comparing languages in"),
    "measure_distances": address("distances between words in"),
    "gather_results": lambda wildcards: "gathering scores and similarities",
    "make_table": item_at,
    "make_figure": item_at,
    "write_config": lambda wildcards: "writing the config",
    "make_verdicts": lambda wildcards: "judging the claims",
    "make_report": lambda wildcards: "writing the page",
}
