"""What a job does, in words: `fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)`."""

from collections.abc import Callable, Mapping

from crossalign.catalog.addresses import Adjustment, Tuned, format_rate, is_continual, parse, parse_adaptation, trial_of
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import KINDS
from crossalign.results import names
from crossalign.runtime.errors import UserError

Wildcards = Mapping[str, str]
TARGETS = {"all", "align_predict", "anc", "adjust", "talk", "study", "grid", "pretrained", "data", "download"}
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


def adaptation_words(wildcards: Wildcards) -> str:
    """What a job does that adapts a model to a language."""
    base, made = names.model(wildcards["base"]), parse_adaptation(wildcards["adaptation"])
    if isinstance(made, Adjustment):
        return f"adjusting {base} to {names.language(made.lang)}"
    return f"continuing MLM of {base} on {text_words(made.text)}"


def tuning_words(run: Tuned, link: str = "on") -> str:
    """The task of a fine-tuning, its language and its initialisation: POS on Russian, layers 1-2 re-initialised."""
    task = names.TASKS[run.task]
    languages = map(names.language, DataSet(KINDS[run.task], run.source, "train").languages)
    told = f"{task if task.isupper() else task.lower()} {link} {' and '.join(languages)}"
    if "+latn" in run.source:
        told += " in Latin script"
    trial = trial_of(run.init)
    init = trial[2] if trial else run.init
    if init.startswith("random-"):
        told += f", {names.init(init)} re-initialised"
    if trial:
        told += f", batch {trial[0]}, learning rate {format_rate(trial[1])}"
    return told + (", continual" if is_continual(init) else "")


def tuned_words(wildcards: Wildcards, link: str = "on") -> str:
    """A job about one fine-tuned model; UserError where the wildcards are no address."""
    path = "tuned/{model}/{preset}-{source}/{init}/seed{seed}"
    run = parse(path.format_map({"model": "bilstm", "init": "ref", **wildcards}))
    return f"{tuning_words(run, link)} ({model_words(run.model)})"


def run_words(address: str) -> str:
    """Any model, also a fine-tuned one."""
    run = parse(address)
    if isinstance(run, Tuned):
        return f"{model_words(run.model)} fine-tuned for {tuning_words(run)}"
    return model_words(run.name)


def item_words(item: str) -> str:
    """A table or figure: `align-predict/table3` -> table 3 of align-predict."""
    paper, _, name = item.partition("/")
    kind = "table" if name.startswith("table") else "figure"
    return f"{kind} {name.removeprefix(kind)} of {paper}"


def bitext_words(wildcards: Wildcards) -> str:
    """The languages of a bitext: English and Hindi."""
    languages = DataSet("bitext", wildcards["name"], wildcards["split"]).languages
    return " and ".join(map(names.language, ["en", *languages]))


def vocabulary_words(name: str) -> str:
    """A vocabulary of one language, or one with a name."""
    text = name.removeprefix("mono-")
    return f"the vocabulary {name}" if text == name else f"a vocabulary for {text_words(text)}"


WORDS: dict[str, Callable[[Wildcards], str]] = {
    "write_config": lambda job: "writing the config",
    "make_world": lambda job: "generating the demo's languages",
    "make_demo_model": lambda job: f"pretraining the demo's {job['model']}",
    "download_file": lambda job: f"downloading {job['path']}",
    "download_labelled": lambda job: f"downloading {job['name']} ({job['split']})",
    "download_model": lambda job: f"downloading the model {names.model(job['model'])}",
    "align_bitext": lambda job: f"aligning words of {bitext_words(job)}",
    "align_pieces": lambda job: f"aligning word pieces of {bitext_words(job)}",
    "train_vocabulary": lambda job: f"building {vocabulary_words(job['trained'])}",
    "pretrain": lambda job: f"pretraining {'a ' * job['trained'].startswith('mono-')}{model_words(job['trained'])}",
    "adjust_model": adaptation_words,
    "adapt_to_text": adaptation_words,
    "finetune": lambda job: f"fine-tuning {tuned_words(job)}",
    "finetune_random": lambda job: f"fine-tuning {tuned_words(job)}",
    "evaluate": lambda job: f"testing {tuned_words(job, 'learnt on')}",
    "train_bilstm": lambda job: f"training {tuned_words(job)}",
    "embed_sentences": lambda job: f"sentence vectors of {run_words(job['address'])}",
    "audit_tokenizer": lambda job: f"looking at the vocabulary of {names.model(job['base'])}",
    "audit_coverage": lambda job: "looking at how a vocabulary covers unseen languages",
    "embed_words": lambda job: f"word vectors of {run_words(job['address'])}",
    "compare_languages": lambda job: f"comparing languages in {run_words(job['address'])}",
    "measure_distances": lambda job: f"distances between words in {run_words(job['address'])}",
    "make_table": lambda job: f"making {item_words('{paper}/{item}'.format_map(job))}",
    "make_figure": lambda job: f"making {item_words('{paper}/{item}'.format_map(job))}",
    "gather_results": lambda job: "gathering scores and similarities",
    "make_verdicts": lambda job: "judging the claims",
    "make_report": lambda job: "writing the page",
}
