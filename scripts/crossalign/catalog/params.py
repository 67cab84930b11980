"""Params and resources of the rules: what a job's command is told besides its files.

Functions that return a function are for a rule's `params:` and `resources:`; Snakemake calls what they return.
"""

import hashlib
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from crossalign.analysis.indexes import CONTROLLED
from crossalign.catalog.addresses import Run, Tuned, is_continual
from crossalign.catalog.code_hash import SCRIPTS, code_hash
from crossalign.catalog.commands import continual_settings, forced, options
from crossalign.catalog.config import pair_count
from crossalign.catalog.inputs import Inputs
from crossalign.catalog.runs import Catalog
from crossalign.catalog.sets import DataSet, mixed_files
from crossalign.catalog.targets import adjust_seeds
from crossalign.catalog.trained_models import stand_ins
from crossalign.tasks import file_of


def times_attempt(number: int) -> Callable[..., int]:
    """A resource that grows with the attempt: a job that ran out of time or memory gets more the next time."""
    return lambda wildcards, attempt: number * attempt


def code(*scripts: str) -> Callable[..., str]:
    """The hash of programs. Computed for rules that have jobs only: each submitted job plans the workflow again."""
    return lambda wildcards: code_hash(*scripts)


def prepare_code(script: str, data: DataSet) -> str:
    """The hash of a program that prepares a set and, of a mixture, of the order of its files.

    Snakemake sees that other files are read, but not that they are read in another order, and trainings may read the
    first examples only.
    """
    if not (files := mixed_files(f"{data.kind}/{data.plain}")):
        return code_hash(script)
    order = "\n".join(files)
    return f"{code_hash(script)}-{hashlib.sha256(order.encode()).hexdigest()[:12]}"


def task_code(script: str, run_of: Callable[[Any], Tuned]) -> Callable[..., str]:
    """The hash of a program that fine-tunes or tests, with the one task of the job."""
    return lambda wildcards: code_hash(script, file_of(run_of(wildcards).task))


def program(script: str) -> Callable[..., str]:
    """The command that runs a script.

    Snakemake does not run a job again when a param that is derived from the output changes, so the project can move;
    what does make a job run again is the hash of the script.
    """
    command = f"python {shlex.quote(str(SCRIPTS / script))}"
    return lambda wildcards, output: command


def parent(file: str | Iterable[str]) -> str:
    """The folder of a file, or of the first of several: a model is named by its folder."""
    return str(Path(file if isinstance(file, str) else next(iter(file))).parent)


def start_option(input: Any) -> str:
    """What a pretraining begins with: the model of the stage before, or a vocabulary."""
    model = getattr(input, "init", None)
    return options(init=parent(model)) if model else options(tokenizer=f"{parent(input.vocabulary)}/tokenizer.json")


def letters_option(input: Any) -> str:
    """The texts whose letters alone a vocabulary has."""
    texts = getattr(input, "letters", None)
    return f"--letters {named_texts(texts)}" if texts else ""


def named(files: Iterable[str], name: Callable[[Path], str]) -> str:
    """Files as name=file."""
    return shlex.join(f"{name(Path(file))}={file}" for file in files)


def named_texts(files: Iterable[str]) -> str:
    """Texts by language, the last part of the set's name."""
    return named(files, lambda file: file.parent.name.rsplit("_", 1)[-1])


def named_languages(files: Iterable[str]) -> str:
    """Parallel sentences by language."""
    return named(files, lambda file: file.stem)


def named_treebanks(files: Iterable[str]) -> str:
    """Treebanks by language, the first part of the set's name."""
    return named(files, lambda file: file.parent.name.split("_")[0])


def named_sets(files: Iterable[str]) -> str:
    """The sets of an evaluation, named as in the scores: trees/en_pud/test."""
    return named(files, lambda file: "/".join(file.with_suffix("").parts[-3:]))


def aligner_options(config: dict) -> str:
    aligner = config["aligner"]
    return options(program=aligner["program"], symmetrise=aligner["symmetrise"])


def trial_files(files: Any) -> str:
    """The trials that decide batch size and learning rate, where these are searched for."""
    return f"--trials {shlex.join(files.trials)}" if files.get("trials") else ""


def continual_files(config: dict, run: Tuned, files: Any) -> str:
    """The options of continual learning, where a fine-tuning has it."""
    if not is_continual(run.init):
        return ""
    return options(
        continual_bitext=files.bitext,
        continual_links=files.links,
        continual_reference=parent(files.original),
        continual_settings=continual_settings(config, run),
    )


def then_evaluate(inputs: Inputs, run: Tuned, files: Any, made: Any) -> str:
    """The end of the command that trains a model which is not kept: its process, which has all loaded, tests it."""
    told = options(
        tuned=parent(made.config),
        base=parent(files.model),
        out=made.scores,
        predictions=made.predictions,
        tokens=inputs.at("tokens"),
        code_hash=code_hash("evaluate.py", file_of(run.task)),
    )
    return f"--then {shlex.quote(str(SCRIPTS / 'evaluate.py'))} {told} --sets {named_sets(files.sets)}"


def embed_model(config: dict, run: Run, files: Any) -> str:
    """The model of an embedding job, and what is laid over it, which remembers its backend."""
    if files.get("tuned"):
        return options(model=parent(files.model), tuned=parent(files.tuned))
    return options(model=parent(files.model), **forced(config, run.name))


def embed_options(corpus: str, run: Run) -> str:
    """`align-predict`: without special tokens, at most 200 sub-words; `anc`: with them, at most 100."""
    if corpus == "pud":
        return options(special_tokens="exclude", max_length=200)
    return options(special_tokens="include", max_length=100, last_layer="cls" if isinstance(run, Tuned) else None)


def compare_options(catalog: Catalog, run: Run, corpus: str) -> str:
    """Languages and indexes that some item wants of a model, and the settings of these indexes alone.

    Another number of directions must not compare models again whose SVCCA nobody asks for.
    """
    settings, indexes = catalog.config["similarity"], catalog.indexes(run, corpus)
    languages = [lang for lang in catalog.languages(run, corpus) if lang != "en"]
    chosen = options(
        svcca_directions=settings["svcca_directions"] if "svcca" in indexes else None,
        control=settings["control"] if set(CONTROLLED).intersection(indexes) else None,
    )
    return f"--languages {shlex.join(languages)} --indexes {shlex.join(indexes)} {chosen}".rstrip()


def distance_options(config: dict) -> str:
    """As many word pairs as the config says, from sentences that no adjusted model of the main setting has seen."""
    paper, seed = config["adjust"], adjust_seeds(config)[0]
    return options(pairs=paper["word_pairs"], skip_sample=pair_count(paper["pairs"]), skip_seeds=seed)


def item_settings(config: dict, paper: str) -> list:
    """The keys that decide how a table or figure looks and which of its numbers are judged.

    The talk shows items of `align-predict` again.
    """
    papers = {"align-predict", "talk"} if paper == "talk" else {paper}
    common = [config["seeds"], config["similarity"]["index"], sorted(stand_ins(config))]
    return common + [config[name] for name in sorted(papers)]
