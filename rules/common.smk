"""Helpers of the rules: the checked config, the catalog, and what each target is made of. No rules."""

import os
import shlex
import sys
from pathlib import Path

# The library lies beside the Snakefile, wherever the workflow is called from.
sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from crossalign.catalog.addresses import CONTINUAL, INIT, MODEL, RECIPE, SET, WORD, Adapted, Base, Tuned, is_continual, model_of
from crossalign.catalog.addresses import parse as run_at
from crossalign.catalog.wanted import wanted_indexes, wanted_languages
from crossalign.report.captions import PAGE, caption_of, category_of, labels_of
from crossalign.catalog.runs import Catalog
from crossalign.runtime.cluster import end_earlier_jobs, left_behind, note_run
from crossalign.catalog.commands import (
    adjustment_options,
    bilstm_options,
    continual_options,
    file_options,
    finetune_options,
    mlm_options,
    monolingual_options,
    options,
    own_model_options,
    prepare_options,
    pretraining_options,
    vocabulary_options,
    way_options,
)
from crossalign.catalog.config import check, pair_count
from crossalign.runtime.errors import UserError
from crossalign.fetch.listing import licence_summary, missing, missing_message
from crossalign.fetch.register import read_datasets, read_models
from crossalign.runtime.files import write_json
from crossalign.papers.adjust.items import knows, pool_set
from crossalign.catalog.trained_models import own_models, own_vocabularies, texts_of
from crossalign.catalog.code_hash import recipe
from crossalign.catalog.search import trials_of
from crossalign.catalog.sets import EXTENSIONS, DataSet, raw_files
from crossalign.catalog.targets import evaluation_sets, training_sets
from crossalign.tasks import file_of
from crossalign.runtime.workarounds import mend_status_queries, submits_as, use_one_timer
from snakemake.exceptions import WorkflowError

SHIMS = Path(workflow.basedir) / "profiles" / "slurm" / "bin"
if "SLURM_JOB_ID" in os.environ:
    mend_status_queries(SHIMS, logger.warning)
try:
    check(config)
    CATALOG = Catalog(config)
    DATASETS = read_datasets(Path(workflow.basedir) / "resources" / "datasets.tsv")
    MODELS = read_models(Path(workflow.basedir) / "resources" / "models.tsv")
    if unlisted := [path for path in CATALOG.files() if path not in DATASETS]:
        raise UserError(f"resources/datasets.tsv lacks files that the config asks for: {', '.join(unlisted)}")
except UserError as error:
    raise WorkflowError(str(error)) from None

OWN_MODELS = own_models(config)
OWN_VOCABULARIES = own_vocabularies(config)
RESULTS = f"results/{config['run']}"
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"
DOWNLOADS = config["downloads"]["folder"]
TUNED = f"{RESULTS}/tuned/{{model}}/{{recipe}}-{{source}}/{{init}}/seed{{seed}}"
BILSTM = f"{RESULTS}/tuned/bilstm/{{recipe}}-{{source}}/ref/seed{{seed}}"
CLAIMS_FILE = Path(RESULTS) / "claims.csv"
REPORT_ASSETS = sorted(file.name for file in (Path(workflow.basedir) / "resources" / "report").iterdir())


wildcard_constraints:
    kind="trees|ner|nli|qa|bitext|text|parallel",
    name=r"[a-z0-9]+(_[a-z0-9]+)*(\+[a-z0-9]+)*",
    split=r"[a-z]+",
    lang=r"[a-z]{2,3}",
    model=rf"(?!bilstm/){MODEL}",
    base=WORD,
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
        + [f"{RESULTS}/vocabularies/{name}/tokenizer.json" for name in CATALOG.vocabularies(items_of(paper))]
        + [downloaded_model(name) for name in models(items_of(paper))]
    )


def products(paper=None):
    """The tables and figures of one paper, or of all."""
    return [file for item in items_of(paper) for file in outputs_of(item)]


def outputs_of(item):
    """The files of a table or figure."""
    kind, extensions = (
        ("tables", ("csv", "tex", "html", "json"))
        if Path(item).name.startswith("table")
        else ("figures", ("svg", "pdf", "png", "csv"))
    )
    return [f"{RESULTS}/{kind}/{item}.{extension}" for extension in extensions]


def item_inputs(item):
    """The results that a table or figure reads: scores, similarities, distances, counts of raw text."""
    runs, sets = CATALOG.needs(item).runs, CATALOG.needs(item).sets
    corpora = sorted({data.name for data in sets if data.kind == "parallel"})
    files = [f"{run.path()}/scores.json" for run in runs if isinstance(run, Tuned)]
    files += [f"similarity/{run.path()}/{corpus}.csv" for run in runs for corpus in corpora]
    files += [f"data/text/{data.name}/train.report.json" for data in sets if data.kind == "text"]
    for data in sets:
        if data.kind == "bitext":
            files += [
                f"distances/{run.path()}/{data.languages[0]}.csv" for run in runs if knows(run, data.languages[0])
            ]
    return [f"{RESULTS}/{path}" for path in sorted(files)]


def printed_numbers(item):
    """What the paper printed, and the spread it states, by which its numbers are judged; an item of one's own has none."""
    paper = item.split("/")[0]
    stated = ["align-predict/claims.csv"] if paper in ("align-predict", "talk") else []
    names = [f"{item}.csv", *stated] if Path(item).name.startswith("table") else [f"{paper}/figure_readings.csv"]
    files = [tracked(f"resources/papers/{name}") for name in names]
    return [file for file in files if Path(file).is_file()]


def item_settings(paper):
    """The keys that decide how a table or figure looks; the talk shows items of `align-predict` again."""
    papers = {"align-predict", "talk"} if paper == "talk" else {paper}
    return [config["seeds"], config["similarity"]["index"], *(config[name] for name in sorted(papers))]


def start_run():
    """Before the first job: licences of what will be fetched, the config for the programs, and no job of a killed run."""
    if not config.get("world") and missing(needed(), DOWNLOADS):
        logger.warning(f"Licences of what is going to be downloaded:\n{licence_summary(missing(needed(), DOWNLOADS))}")
    write_config()
    use_one_timer(workflow.scheduler, logger.warning)
    planned = [number for job in workflow.dag.needrun_jobs() for number in workflow.persistence.external_jobids(job)]
    if workflow.executor_plugin.name == "slurm":
        mend_status_queries(SHIMS, logger.warning)
    # A machine may have SLURM's programs and no scheduler that answers: a local run does not ask, unless jobs are known.
    if planned or workflow.executor_plugin.name == "slurm":
        try:
            # Without a note of the name that its jobs carry, other runs would have to ask the user.
            if run := submits_as(workflow.scheduler):
                note_run(Path.cwd(), run)
            end_earlier_jobs(left_behind(Path.cwd(), planned))
        except UserError as error:
            raise WorkflowError(str(error)) from None


def write_config():
    write_json(f"{RESULTS}/config.json", config, sort_keys=True)


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


def links_file(data, pieces=False):
    """The word links of a bitext, or the links of its word pieces."""
    return f"{RESULTS}/links/{data.name}/{data.split}{'.pieces' if pieces else ''}.pharaoh"


def links_of(data):
    """All links of a bitext that are asked for: those of pieces for the language of the sub-word ablation only."""
    study = config["adjust"]["aggregations"]
    pieces = data.languages == (study["lang"],) and "subword" in study["values"]
    return [links_file(data)] + [links_file(data, pieces=True)] * pieces


def aligner_options():
    aligner = config["aligner"]
    return options(program=aligner["program"], path=aligner["path"], symmetrise=aligner["symmetrise"])


def growing(number):
    """A resource that grows with the attempt: a job that ran out of time or memory gets more the next time."""
    return lambda wildcards, attempt: number * attempt


def code(*scripts):
    """A param: the recipe of programs. Worked out only for rules that have jobs, which matters when each submitted job plans
    the workflow again."""
    return lambda wildcards: recipe(*scripts)


def task_code(script):
    """A param: the recipe of a program that fine-tunes or tests, with the one task of the job."""
    return lambda wildcards: recipe(script, file_of(tuned_of(wildcards).task))


def program(script, processes=1):
    """A param: the command that runs a script. Snakemake does not run a job again when a param that is derived from the
    output changes, so the project can move; what does make a job run again is the recipe of the script."""
    scripts = Path(workflow.basedir) / "scripts"
    on_gpus = shlex.quote(str(scripts / "with_gpus.py"))
    team = f"python {on_gpus} {processes} torchrun --standalone --nproc-per-node {processes}"
    command = f"{'python' if processes == 1 else team} {shlex.quote(str(scripts / script))}"
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
