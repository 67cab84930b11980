"""Helpers of the rules: the checked config, the catalog, and what each target is made of. No rules."""

import json
import os
import shlex
import sys
from functools import cache
from pathlib import Path

# The library lies beside the Snakefile, wherever the workflow is called from.
sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from crossalign.addresses import INIT, MODEL, RECIPE, SET, Base, Tuned, model_of
from crossalign.addresses import parse as run_at
from crossalign.catalog import Catalog
from crossalign.commands import file_options, finetune_options, options, prepare_options, way_options
from crossalign.config import check
from crossalign.errors import UserError
from crossalign.fetch.register import read_datasets, read_models
from crossalign.files import write_atomic
from crossalign.recipe import recipe
from crossalign.sets import EXTENSIONS, DataSet, raw_files
from crossalign.targets import evaluation_sets, training_sets
from snakemake.exceptions import WorkflowError

try:
    check(config)
    CATALOG = Catalog(config)
    DATASETS = read_datasets(Path(workflow.basedir) / "resources" / "datasets.tsv")
    MODELS = read_models(Path(workflow.basedir) / "resources" / "models.tsv")
except UserError as error:
    raise WorkflowError(str(error)) from None

RESULTS = f"results/{config['run']}"
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"
DOWNLOADS = config["downloads"]["folder"]
TUNED = f"{RESULTS}/tuned/{{model}}/{{recipe}}-{{source}}/{{init}}/seed{{seed}}"


wildcard_constraints:
    kind="trees|ner|nli|qa|bitext|text|parallel",
    name=r"[a-z0-9]+(_[a-z0-9]+)*(\+[a-z0-9]+)*",
    split=r"[a-z]+",
    lang=r"[a-z]{2,3}",
    model=MODEL,
    recipe=RECIPE,
    source=SET,
    init=INIT,
    seed=r"\d+",
    address=r"(models|tuned)/.+",
    corpus="pud|xnliext",


def tracked(path):
    """A file of the repository, relative to the working folder: an absolute path would make a moved project start anew."""
    return os.path.relpath(Path(workflow.basedir) / path)


def items_of(paper=None):
    """The chosen items of one paper, or of all."""
    return [item for item in CATALOG.items if paper is None or item.startswith(f"{paper}/")]


def data_products(paper=None):
    """The prepared sets, word links and downloaded models behind the chosen items."""
    sets = sorted(CATALOG.sets(items_of(paper)))
    return (
        [f"{RESULTS}/{data.path()}" for data in sets]
        + [links for data in sets if data.kind == "bitext" for links in links_of(data)]
        + [downloaded_model(name) for name in models(items_of(paper))]
    )


def products(paper=None):
    """Everything that the chosen items of one paper, or of all, are made of so far."""
    runs = sorted(run.path() for run in CATALOG.runs(items_of(paper)) if isinstance(run, Tuned) and buildable(run))
    return (
        data_products(paper)
        + [f"{RESULTS}/{path}/scores.json" for path in runs]
        + [file for item in items_of(paper) for file in outputs_of(item)]
    )


def buildable(run):
    """Whether the stages that a run needs are there: so far fine-tunings of models that exist already."""
    start = model_of(run) if isinstance(run, Tuned) else run
    if not isinstance(start, Base) or start.name.startswith("mono-") or start.name in CATALOG.pretrained:
        return False
    if isinstance(run, Tuned) and run.init == "continual":
        return False
    return available(start.name)


def available(name):
    """Whether a base model can be had: from the hub, or because it lies in the folder that the config names."""
    return config["models"] == "hub" or Path(model_file(name)).is_file()


def outputs_of(item):
    """The files of a table or figure, if all that it needs can be made so far."""
    # Distances of words and the choice of vectors in a tuned model's last layer are stages to come.
    unmade = any(data.kind == "bitext" for data in CATALOG.needs(item).sets) or item == "anc/figure8"
    if unmade or not all(map(buildable, CATALOG.needs(item).runs)):
        return []
    if "table" in item:
        return [f"{RESULTS}/tables/{item}.{extension}" for extension in ("csv", "tex", "html")]
    return [f"{RESULTS}/figures/{item}.{extension}" for extension in ("svg", "pdf", "png", "csv")]


def item_inputs(item):
    """The results that a table or figure reads: scores, similarities, counts of raw text."""
    runs, sets = CATALOG.needs(item).runs, CATALOG.needs(item).sets
    corpora = sorted({data.name for data in sets if data.kind == "parallel"})
    scores = [f"{run.path()}/scores.json" for run in runs if isinstance(run, Tuned)]
    similarity = [f"similarity/{run.path()}/{corpus}.csv" for run in runs for corpus in corpora]
    reports = [f"data/text/{data.name}/train.report.json" for data in sets if data.kind == "text"]
    return [f"{RESULTS}/{path}" for path in sorted(scores + similarity + reports)]


@cache
def corpus_languages(corpus):
    """The languages whose sentences the chosen items compare, in one corpus of parallel sentences."""
    return sorted({data.split for data in CATALOG.sets() if data.kind == "parallel" and data.name == corpus} | {"en"})


def similarity_indexes(corpus):
    """`align-predict` compares by CKA on PUD, `anc` by everything on the XNLI extension."""
    return ["cka", "cka-uncentred", "cka-rbf"] if corpus == "pud" else ["all"]


def embed_options(corpus, run):
    """`align-predict`: without special tokens, at most 200 sub-words; `anc`: with them, at most 100."""
    if corpus == "pud":
        return options(special_tokens="exclude", max_length=200)
    return options(special_tokens="include", max_length=100, last_layer="cls" if isinstance(run, Tuned) else None)


def embed_inputs(wildcards):
    run = run_at(wildcards.address)
    files = {
        "text": [
            f"{RESULTS}/data/parallel/{wildcards.corpus}/{lang}.txt" for lang in corpus_languages(wildcards.corpus)
        ]
    }
    if isinstance(run, Tuned):
        files["tuned"] = f"{RESULTS}/{run.path()}/model/model.safetensors"
    start = model_of(run) if isinstance(run, Tuned) else run
    return files | {"model": model_file(start.name)}


def embed_model(files):
    """The model of an embedding job, and what is laid over it."""
    tuned = str(Path(files.tuned).parent) if "tuned" in files.keys() else None
    return options(model=str(Path(files.model).parent), tuned=tuned)


def item_settings(paper):
    """The keys that decide how a table or figure looks; the talk shows items of `align-predict` again."""
    papers = {"align-predict", "talk"} if paper == "talk" else {paper}
    return [config["seeds"], config["similarity"], *(config[name] for name in sorted(papers))]


def write_config():
    with write_atomic(f"{RESULTS}/config.json") as stream:
        json.dump(config, stream, indent=2, sort_keys=True)


def tuned_of(wildcards):
    return Tuned(wildcards.model, wildcards.recipe, wildcards.source, wildcards.init, int(wildcards.seed))


def model_file(name):
    """The file whose folder is a base model: from the hub, or from the folder that the config names."""
    return (
        downloaded_model(name) if config["models"] == "hub" else tracked(f"{config['models']}/{name}/model.safetensors")
    )


def finetune_inputs(wildcards):
    run = tuned_of(wildcards)
    sets = {name: f"{RESULTS}/{data.path()}" for name, data in training_sets(config, run).items()}
    return sets | {"model": model_file(model_of(run).name)}


def evaluate_inputs(wildcards):
    run = tuned_of(wildcards)
    sets = [f"{RESULTS}/{data.path()}" for data in evaluation_sets(config, run)]
    return {"sets": sets, "model": model_file(model_of(run).name)}


def named_sets(wildcards, input):
    """The sets of an evaluation as name=file, named as in the scores: trees/en_pud/test."""
    sets = evaluation_sets(config, tuned_of(wildcards))
    return shlex.join(f"{data.kind}/{data.name}/{data.split}={RESULTS}/{data.path()}" for data in sets)


def models(items=None):
    """The models to fetch: none where the models are those of the repository."""
    return CATALOG.models(items) if config["models"] == "hub" else []


def downloads():
    """Every file and model that the chosen items need from outside."""
    return [downloaded(path) for path in CATALOG.files()] + [downloaded_model(name) for name in models()]


def downloaded(path):
    return f"{DOWNLOADS}/{path}"


def downloaded_model(name):
    """A model's folder is complete when this file is there."""
    return f"{DOWNLOADS}/models/{name}/complete.json"


def links_of(data):
    """The word links of a bitext and, for the language of the sub-word ablation, the links of its word pieces."""
    links = f"{RESULTS}/links/{data.name}/{data.split}"
    study = config["adjust"]["aggregations"]
    pieces = data.languages == (study["lang"],) and "subword" in study["values"] and available(config["adjust"]["base"])
    return [f"{links}.pharaoh"] + [f"{links}.pieces.pharaoh"] * pieces


def aligner_options():
    aligner = config["aligner"]
    return options(program=aligner["program"], path=aligner["path"], symmetrise=aligner["symmetrise"])


def program(script):
    """A param: the command that runs a script. Snakemake does not run a job again when a param that is derived from the
    output changes, so the project can move; what does make a job run again is the recipe of the script."""
    command = f"python {shlex.quote(str(Path(workflow.basedir) / 'scripts' / script))}"
    return lambda wildcards, output: command


def set_of(wildcards, kind):
    """The set that a prepare job makes; the two splits of a text are made together."""
    return DataSet(kind, wildcards.name, wildcards.get("split", "train"))


def sources_of(kind):
    """An input function: the downloaded files that a set of this kind is prepared from."""
    return lambda wildcards: [downloaded(path) for path in raw_files(set_of(wildcards, kind))]


def prepare_options_of(kind):
    """A param function: the options of the program that prepares a set of this kind."""
    return lambda wildcards: prepare_options(config, set_of(wildcards, kind))


def mirror_ready():
    """The demo world makes the mirror that its files are fetched from."""
    return f"{RESULTS}/mirror/SHA256SUMS" if config.get("world") else []


def file_way(wildcards, output):
    """How a file is fetched; derived from the output for the same reason as a program: another mirror or another number
    of attempts does not make the file another one, and must not fetch it again."""
    row = DATASETS[wildcards.path]
    return f"{way_options(config['downloads'])} {options(mirror=row.mirror, licence=row.licence)}"


def needed():
    """The registers' rows of all that the chosen items need from outside."""
    return [DATASETS[path] for path in CATALOG.files()] + [MODELS[name] for name in models()]
