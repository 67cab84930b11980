"""What every job reads and writes: the one answer for the rules, the planner and the report's provenance.

A job is found by a file that it makes (`Inputs.job`) or by what it is about (`Inputs.finetune(run)`). Paths are as
Snakemake sees them, relative to the working folder.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from crossalign.catalog.addresses import Adapted, Adjustment, Base, Run, Tuned, is_continual, model_of, parse
from crossalign.catalog.labelled import labelled
from crossalign.catalog.papers import papers
from crossalign.catalog.runs import Catalog, covers_language
from crossalign.catalog.sets import EXTENSIONS, DataSet, parse_set, pool_set, raw_files, text_set
from crossalign.catalog.studied import HUB, model_folder, place_of
from crossalign.catalog.targets import bases, evaluation_sets, training_sets, trials_of
from crossalign.catalog.trained_models import texts_of, trained_model, trained_vocabulary
from crossalign.runtime.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
PAPER_TARGETS = {name.replace("-", "_"): name for name in papers()}
TARGETS = ("all", *PAPER_TARGETS, "grid", "pretrained", "data", "download")
# The search over batch sizes and learning rates.
GRID = "align-predict/table3"
# Files of a run that an item may read.
RUN_FILES = {"scores": "scores.json", "predictions": "predictions.jsonl.gz", "training": "training.json"}
# The item of unseen languages, beside which the page shows how well they are covered.
COVERED = "talk/table3"
VERDICTS = {"numbers": "verdicts.csv", "claims": "claims.csv", "details": "claims.json"}
Files = dict[str, str | list[str]]


@dataclass(frozen=True)
class Job:
    """One job. `inputs` have the names of its rule; the job itself is named by its first output.

    `subject` is what it is about (a run, a data set, an item, a register's name), `detail` a corpus or a language.
    """

    rule: str
    outputs: tuple[str, ...]
    inputs: Mapping[str, str | list[str]] = field(default_factory=dict)
    subject: Run | DataSet | str = ""
    detail: str = ""
    gpus: int = 0
    threads: int = 1
    benchmark: str = ""

    @property
    def name(self) -> str:
        return self.outputs[0]

    @property
    def reads(self) -> list[str]:
        """Every file that it reads."""
        lists = ([files] if isinstance(files, str) else files for files in self.inputs.values())
        return [file for files in lists for file in files]


# What rules write, below a folder that may hold wildcards.


def model_files(folder: str) -> dict[str, str]:
    """A pretrained or adapted model."""
    names = {"weights": "model.safetensors", "config": "config.json", "tokenizer": "tokenizer.json"}
    return {name: f"{folder}/{file}" for name, file in (names | {"training": "training.json"}).items()}


def tuned_files(folder: str) -> dict[str, str]:
    """A fine-tuned model."""
    names = {"weights": "model/model.safetensors", "config": "model/config.json", "training": "training.json"}
    return {name: f"{folder}/{file}" for name, file in names.items()}


def kept(config: dict, run: Tuned) -> bool:
    """Whether a fine-tuned model stays on disk after its last use; `rules/finetune.smk` does so."""
    whole = run.model == "bilstm" or not run.init.startswith(("random-", "grid-"))
    return config["keep_models"] == "all" or run.model == "bilstm" or (whole and config["keep_models"] == "ref")


def score_files(folder: str) -> dict[str, str]:
    """The test of a fine-tuned model."""
    return {name: f"{folder}/{RUN_FILES[name]}" for name in ("scores", "predictions")}


def set_files(folder: str, kind: str, name: str, split: str) -> dict[str, str]:
    """A prepared set and the account of what was kept; the two splits of a text are made together."""
    stem = f"{folder}/data/{kind}/{name}"
    if kind == "text":
        files = {part: f"{stem}/{part}.txt" for part in ("train", "dev")}
        return files | {f"{part}_report": f"{stem}/{part}.report.json" for part in files}
    return {"data": f"{stem}/{split}.{EXTENSIONS[kind]}", "report": f"{stem}/{split}.report.json"}


def item_files(folder: str, item: str) -> dict[str, str]:
    """A table or figure, in every format."""
    kind = item_kind(item)
    formats = ("csv", "tex", "html", "json") if kind == "table" else ("svg", "pdf", "png", "csv")
    return {form: f"{folder}/{kind}s/{item}.{form}" for form in formats}


def item_kind(item: str) -> str:
    return "table" if item.rpartition("/")[2].startswith("table") else "figure"


def tracked(path: str | Path) -> str:
    """A file of the repository. An absolute path would make a moved project start anew."""
    return os.path.relpath(ROOT / path)


class Inputs:
    """Answers for the chosen items of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog, self.config = catalog, catalog.config
        self.results = f"results/{self.config['run']}"
        self.downloads = self.config["downloads"]["folder"]
        # The merged config, for the programs.
        self.config_file = self.at("config.json")
        self.verdicts = {name: self.at(file) for name, file in VERDICTS.items()}
        self.page = {"page": self.at("report/index.html"), "provenance": self.at("report/provenance.json")}
        self.gathered = [self.at(f"{name}.{form}") for name in ("scores", "similarity") for form in ("csv", "parquet")]
        # How well the vocabulary of `talk` covers its languages: beside an item, as no paper has such a table.
        self.coverage = self.at("coverage.csv")
        self._jobs: dict[str, Job | None] = {}
        self._model_folders: dict[str, list[str]] = {}

    def job(self, file: str) -> Job | None:
        """The job that makes a file; None of a file that is there from the start. Snakemake asks many times."""
        if file not in self._jobs:
            self._jobs[file] = self._find_job(file)
        return self._jobs[file]

    def _find_job(self, file: str) -> Job | None:
        if file.startswith(f"{self.downloads}/"):
            path = file.removeprefix(f"{self.downloads}/")
            match path.split("/"):
                case ["models", model, _]:
                    return self.download_model(model)
                case ["datasets", name, split, _]:
                    return self.download_labelled(name, split)
            return self.download_file(path)
        if not file.startswith(f"{self.results}/"):
            return None
        path = file.removeprefix(f"{self.results}/")
        folder, name = os.path.split(path)
        stem = name.split(".")[0]
        match path.split("/"):
            case ["data", kind, _, _]:
                return self.prepare(parse_set(f"{folder}/{stem}.{EXTENSIONS[kind]}"))
            case ["links", bitext, _]:
                return self.align(DataSet("bitext", bitext, stem), pieces=".pieces." in name)
            case ["vocabularies", vocabulary, _]:
                return self.train_vocabulary(vocabulary)
            case ["models", *_]:
                return self.make_model(parse(folder))
            case ["tuned", *_]:
                run = parse(folder.removesuffix("/model"))
                if run.model == "bilstm":
                    return self.train_bilstm(run)
                tested = stem in ("scores", "predictions") and kept(self.config, run)
                return self.evaluate(run) if tested else self.finetune(run)
            case ["embeddings", *address, "words", _]:
                return self.embed_words(parse("/".join(address)), stem.split("-")[0])
            case ["embeddings", *address, corpus]:
                return self.embed_sentences(parse("/".join(address)), corpus)
            case ["similarity", *address, _]:
                return self.compare_languages(parse("/".join(address)), stem)
            case ["distances", *address, _]:
                return self.measure_distances(parse("/".join(address)), stem)
            case ["tokenizers", _]:
                return self.audit_tokenizer(name.removesuffix(".csv"))
            case ["tables" | "figures", paper, _]:
                return self.make_item(f"{paper}/{stem}")
            case ["report", _]:
                return self.make_report()
            case ["mirror", _]:
                return self.make_world()
            case ["config.json"]:
                return Job("write_config", (file,))
            case [_] if file in self.gathered:
                return self.gather_results()
            case ["coverage.csv"]:
                return self.audit_coverage()
            case ["verdicts.csv" | "claims.csv" | "claims.json"]:
                return self.make_verdicts()
        raise UserError(f"no rule is known to make {file}")

    # Targets

    def items_of(self, target: str) -> list[str]:
        """The chosen tables and figures behind a target: a rule's name, an item's, or a file of an item.

        None of them is behind a file of a model, which is a target, too.
        """
        items = list(self.catalog.items)
        if target in ("all", "pretrained", "data", "download", self.page["page"]):
            return items
        if self._is_base_model(target):
            return []
        if target in PAPER_TARGETS:
            return [item for item in items if item.startswith(f"{PAPER_TARGETS[target]}/")]
        if target == "grid":
            return [item for item in items if item == GRID]
        path = target.removeprefix(f"{self.results}/tables/").removeprefix(f"{self.results}/figures/")
        if (item := path.partition(".")[0]) in items:
            return [item]
        raise UserError(
            f"unknown target '{target}': the plan knows {', '.join(TARGETS)}, and tables and figures that the config "
            f"chooses, such as align-predict/table1, and base models, such as {self.results}/models/NAME/training.json"
        )

    def _is_base_model(self, file: str) -> bool:
        """Whether a file belongs to a model that is pretrained here, or to one of its stages."""
        match file.removeprefix(f"{self.results}/").split("/"):
            case ["models", name, _] if self.catalog.made_here(name):
                return file in self.make_model(Base(name)).outputs
        return False

    def target(self, target: str) -> list[str]:
        """The files of a target."""
        items = self.items_of(target)
        if target == "download":
            return self.fetched(items)
        if target == "data":
            return self.data(items)
        if target == "pretrained":
            return self.pretrained(items)
        if self._is_base_model(target):
            return [target]
        page = [self.page["page"]] if target in ("all", self.page["page"]) else []
        page += self.gathered[:1] if target == "all" else []
        page += [self.coverage] if target in ("all", "talk") and self._covers(items) else []
        return [file for item in items for file in item_files(self.results, item).values()] + page

    def _covers(self, items: Iterable[str]) -> bool:
        """Whether the texts of the unseen languages are prepared and the model is there for items anyway."""
        return COVERED in items and Base(bases(self.config, "talk")[0]) in self.catalog.runs(items)

    def fetched(self, items: Iterable[str] | None = None) -> list[str]:
        """Every file and model that items need from outside."""
        files = [f"{self.downloads}/{path}" for path in self.catalog.files(items)]
        files += [f"{self.downloads}/{split.complete}" for split in self.catalog.hub_splits(items)]
        return files + [self._complete(name) for name in self.hub_models(items)]

    def hub_models(self, items: Iterable[str] | None = None) -> list[str]:
        """The models to fetch: none of those that lie in a folder."""
        return [name for name in self.catalog.models(items) if place_of(self.config, name) == HUB]

    def data(self, items: Iterable[str]) -> list[str]:
        """The prepared sets, word links, vocabularies and downloaded models behind items."""
        sets = sorted(self.catalog.sets(items))
        study = self.config["adjust"]["aggregations"]
        links = [
            self.links(data, pieces)
            for data in sets
            if data.kind == "bitext"
            for pieces in (False, True)
            # Links of pieces are asked for in the language of the sub-word ablation only.
            if not pieces or (data.languages == (study["lang"],) and "subword" in study["values"])
        ]
        vocabularies = map(self.vocabulary, self.catalog.vocabularies(items))
        models = map(self._complete, self.hub_models(items))
        return [*map(self.set, sets), *links, *vocabularies, *models]

    def pretrained(self, items: Iterable[str]) -> list[str]:
        """The models that are pretrained here for items, at their last stage."""
        bases = sorted(run.name for run in self.catalog.runs(items) if isinstance(run, Base))
        return [self.model(Base(name))[0] for name in bases if self.catalog.made_here(name)]

    # Where things lie

    def at(self, *parts: str) -> str:
        return "/".join((self.results, *parts))

    def set(self, data: DataSet) -> str:
        """A prepared set."""
        return self.at(data.path())

    def set_report(self, data: DataSet) -> str:
        """The account of a prepared set."""
        return self.at(f"data/{data.kind}/{data.name}/{data.split}.report.json")

    def links(self, data: DataSet, pieces: bool = False) -> str:
        """The word links of a bitext, or the links of its word pieces."""
        return self.at("links", data.name, f"{data.split}{'.pieces' if pieces else ''}.pharaoh")

    def vocabulary(self, name: str) -> str:
        """A vocabulary that is learnt here."""
        return self.at("vocabularies", name, "tokenizer.json")

    def model(self, start: Run) -> list[str]:
        """The files of a model to start from, in the folder of the first: made here, from the hub, or from a folder."""
        if isinstance(start, Adapted) or self.catalog.made_here(start.name):
            files = model_files(self.at(start.path()))
            return [files["weights"], files["config"], files["tokenizer"]]
        if place_of(self.config, start.name) == HUB:
            return [self._complete(start.name)]
        return self._folder_model(start.name)

    def _complete(self, name: str) -> str:
        """A downloaded model is complete when this file is there."""
        return f"{self.downloads}/models/{name}/complete.json"

    def _folder_model(self, name: str) -> list[str]:
        if name not in self._model_folders:
            folder = model_folder(self.config, name)
            # Its own accounts say nothing that a job reads.
            names = {file.name for file in folder.glob("*") if file.is_file()} - {"provenance.json", "training.json"}
            names = names or {"config.json", "tokenizer.json"}  # of a model that is going to be made again
            files = ["model.safetensors", *sorted(names - {"model.safetensors"})]
            self._model_folders[name] = [tracked(folder / file) for file in files]
        return self._model_folders[name]

    def vocabulary_of(self, model: str) -> list[str]:
        """Files beside which the vocabulary of a base model lies: one that is learnt here is there before the model."""
        name = (trained_model(self.config, model) or {}).get("vocabulary", model)
        return [self.vocabulary(name)] if trained_vocabulary(self.config, name) else self.model(Base(name))

    def _looked_into(self, run: Run) -> Files:
        """A model whose vectors are taken; a fine-tuned one lies over the one that it started from."""
        if not isinstance(run, Tuned):
            return {"model": self.model(run)}
        files = tuned_files(self.at(run.path()))
        return {"model": self.model(model_of(run)), "tuned": [files["weights"], files["config"]]}

    def _bitext(self, base: str, made: Adjustment) -> Files:
        """The sentence pairs and links of an adjustment, and the model as it was before."""
        pool = pool_set(self.config, made.lang)
        links = self.links(pool, pieces=made.aggregation == "subword")
        return {"original": self.model(Base(base)), "bitext": self.set(pool), "links": links}

    def _texts(self, run: Run) -> Files:
        """The texts that a model is trained on, and those held out."""
        sets = self.catalog.sets_of(run)
        return {
            name: [self.set(data) for data in sets if data.split == split]
            for name, split in (("texts", "train"), ("dev", "dev"))
        }

    # Data

    def make_world(self) -> Job:
        """The demo world and the mirror that its files are fetched from."""
        world = {"settings": tracked(self.config["world"])}
        return Job("make_world", (self.at("mirror/SHA256SUMS"),), world, "world", threads=2, benchmark="make_world.tsv")

    def download_file(self, path: str) -> Job:
        """A raw file; in the demo it comes from the mirror that the world makes."""
        mirror = {"mirror": self.at("mirror/SHA256SUMS")} if self.config.get("world") else {}
        return Job("download_file", (f"{self.downloads}/{path}",), mirror, path)

    def download_model(self, name: str) -> Job:
        return Job("download_model", (self._complete(name),), subject=name)

    def download_labelled(self, name: str, split: str) -> Job:
        """The files of one split of a labelled set of the hub."""
        output = f"{self.downloads}/datasets/{name}/{split}/complete.json"
        return Job("download_labelled", (output,), subject=f"{name}/{split}")

    def _raw(self, data: DataSet) -> list[str]:
        """The files that a set is prepared from; a download of several is named by the list of them."""
        own = labelled(self.config, data)
        if own and not own.on_hub:
            return [os.path.relpath(file) for file in own.local_files()]
        return [f"{self.downloads}/{path}" for path in ([own.on_hub.complete] if own else raw_files(data))]

    def prepare(self, data: DataSet) -> Job:
        """A prepared set."""
        if data.kind == "text":
            data = DataSet(data.kind, data.name, "train")
        outputs = tuple(set_files(self.results, data.kind, data.name, data.split).values())
        inputs: Files = {"source": self._raw(data)}
        if data.kind == "text" and self.config["pretrain"].get("overlap"):
            inputs["apart"] = [self.set(found) for found in self.catalog.evaluated(data.languages[0])]
        measured = {"text": data.name, "bitext": f"{data.name}-{data.split}"}.get(data.kind)
        benchmark = f"prepare_{data.kind}/{measured}.tsv" if measured else ""
        return Job(f"prepare_{data.kind}", outputs, inputs, data, benchmark=benchmark)

    def align(self, data: DataSet, pieces: bool = False) -> Job:
        """Links of words or of word pieces."""
        rule = "align_pieces" if pieces else "align_bitext"
        inputs: Files = {"pool": self.set(data)}
        if pieces:
            inputs["model"] = self.vocabulary_of(bases(self.config, "adjust")[0])
        benchmark = f"{rule}/{data.name}-{data.split}.tsv"
        return Job(rule, (self.links(data, pieces),), inputs, data, threads=2, benchmark=benchmark)

    # Models

    def train_vocabulary(self, name: str) -> Job:
        """A vocabulary that is learnt here."""
        entry = trained_vocabulary(self.config, name)
        inputs: Files = {"texts": [self.set(data) for data in texts_of(entry)]}
        if letters := entry.get("letters"):
            inputs["letters"] = [self.set(data) for data in texts_of(letters)]
        return Job("train_vocabulary", (self.vocabulary(name),), inputs, name)

    def make_model(self, run: Base | Adapted) -> Job:
        """A model that is pretrained or adapted here."""
        if isinstance(run, Adapted):
            return self.adapt(run)
        entry = trained_model(self.config, run.name)
        earlier = entry.get("init")
        start = {"init": self.model(Base(earlier))} if earlier else {"vocabulary": self.vocabulary_of(run.name)}
        inputs: Files = dict(start)
        inputs |= {name: [self.set(data) for data in texts_of(entry, split)] for name, split in _SPLITS}
        outputs = tuple(model_files(self.at(run.path())).values())
        return Job("pretrain", outputs, inputs, run, gpus=1, benchmark=f"pretrain/{run.name}.tsv")

    def adapt(self, run: Adapted) -> Job:
        """A model that is pulled together on linked words, or goes on with the text of a language."""
        if isinstance(run.adaptation, Adjustment):
            rule, inputs = "adjust_model", self._bitext(run.base, run.adaptation)
        else:
            rule, inputs = "adapt_to_text", {"original": self.model(Base(run.base))} | self._texts(run)
        outputs = tuple(model_files(self.at(run.path())).values())
        return Job(rule, outputs, inputs, run, gpus=1, benchmark=f"{rule}/{run.name}-seed{run.seed}.tsv")

    def finetune(self, run: Tuned) -> Job:
        """A fine-tuned model; one that is not kept is tested as well."""
        inputs: Files = {name: self.set(data) for name, data in training_sets(self.config, run).items()}
        start = model_of(run)
        inputs["model"] = self.model(start)
        if is_continual(run.init):
            inputs |= self._bitext(start.base, start.adaptation)
        if trials := trials_of(self.config, run):
            inputs["trials"] = [tuned_files(self.at(trial.path()))["training"] for trial in trials]
        rule = "finetune" if run.init == "ref" or is_continual(run.init) else "finetune_random"
        outputs = tuple(tuned_files(self.at(run.path())).values())
        if not kept(self.config, run):
            inputs["sets"] = [self.set(data) for data in evaluation_sets(self.config, run)]
            outputs = (*score_files(self.at(run.path())).values(), *outputs)
        return Job(rule, outputs, inputs, run, gpus=1, benchmark=f"finetune/{_benchmark(run)}")

    def evaluate(self, run: Tuned) -> Job:
        """The scores of a fine-tuned model that is kept on all its sets."""
        tuned = tuned_files(self.at(run.path()))
        inputs: Files = {"sets": [self.set(data) for data in evaluation_sets(self.config, run)]}
        inputs |= {"model": self.model(model_of(run)), "weights": tuned["weights"], "config": tuned["config"]}
        outputs = tuple(score_files(self.at(run.path())).values())
        return Job("evaluate", outputs, inputs, run, gpus=1, benchmark=f"evaluate/{_benchmark(run)}")

    def train_bilstm(self, run: Tuned) -> Job:
        """A model that starts from nothing, trained and tested in one go."""
        inputs: Files = {name: self.set(data) for name, data in training_sets(self.config, run).items()}
        inputs["sets"] = [self.set(data) for data in evaluation_sets(self.config, run)]
        outputs = (*score_files(self.at(run.path())).values(), *tuned_files(self.at(run.path())).values())
        benchmark = f"train_bilstm/{run.preset}-{run.source}-seed{run.seed}.tsv"
        return Job("train_bilstm", outputs, inputs, run, gpus=1, benchmark=benchmark)

    # Vectors and what is computed from them

    def embed_sentences(self, run: Run, corpus: str) -> Job:
        """A folder of sentence vectors, all languages and layers."""
        languages = self.catalog.languages(run, corpus)
        inputs: Files = {"text": [self.set(DataSet("parallel", corpus, lang)) for lang in languages]}
        inputs |= self._looked_into(run)
        benchmark = f"embed_sentences/{run.path()}-{corpus}.tsv"
        outputs = (self.at("embeddings", run.path(), corpus),)
        return Job("embed_sentences", outputs, inputs, run, corpus, gpus=1, benchmark=benchmark)

    def compare_languages(self, run: Run, corpus: str) -> Job:
        """The similarities of one model on one corpus."""
        vectors = {"vectors": self.at("embeddings", run.path(), corpus)}
        benchmark = f"compare_languages/{run.path()}-{corpus}.tsv"
        outputs = (self.at("similarity", run.path(), f"{corpus}.csv"),)
        return Job("compare_languages", outputs, vectors, run, corpus, benchmark=benchmark)

    def embed_words(self, run: Run, lang: str) -> Job:
        """Vectors of linked and of other words."""
        pool = pool_set(self.config, lang)
        inputs = {"pool": self.set(pool), "links": self.links(pool)} | self._looked_into(run)
        outputs = tuple(self.measure_distances(run, lang).inputs.values())
        benchmark = f"embed_words/{run.path()}-{lang}.tsv"
        return Job("embed_words", outputs, inputs, run, lang, gpus=1, benchmark=benchmark)

    def audit_tokenizer(self, model: str) -> Job:
        """How a model's vocabulary cuts the words of the languages' treebanks."""
        sets = sorted(data for data in self.catalog.sets_read("tokenizer", Base(model)) if data.kind == "trees")
        inputs: Files = {"treebanks": list(map(self.set, sets)), "model": self.vocabulary_of(model)}
        return Job("audit_tokenizer", (self.at("tokenizers", f"{model}.csv"),), inputs, model)

    def audit_coverage(self) -> Job:
        """How well the vocabulary of the model of `talk` covers the raw text of its languages."""
        model = bases(self.config, "talk")[0]
        texts = [self.set(text_set(self.config, lang)) for lang in self.config["talk"]["languages"]]
        inputs: Files = {"texts": texts, "model": self.vocabulary_of(model)}
        return Job("audit_coverage", (self.coverage,), inputs, model)

    def distances(self, run: Run, lang: str) -> list[str]:
        """Distances of linked words in one model: a histogram and its summary."""
        return [self.at("distances", run.path(), f"{lang}.{form}") for form in ("csv", "json")]

    def measure_distances(self, run: Run, lang: str) -> Job:
        folder = self.at("embeddings", run.path(), "words")
        vectors = {kind: f"{folder}/{lang}-{kind}.npy" for kind in ("related", "unrelated")}
        return Job("measure_distances", tuple(self.distances(run, lang)), vectors, run, lang)

    # Tables, figures, verdicts, page

    def item_results(self, item: str) -> list[str]:
        """The files that a table or figure is made from: of its runs and of its sets."""
        needs, reads = self.catalog.needs(item), self.catalog.known[item].reads
        runs = sorted(needs.runs, key=lambda run: run.path())
        tuned = [run for run in runs if isinstance(run, Tuned)]
        files = [self.at(run.path(), RUN_FILES[name]) for name in reads if name in RUN_FILES for run in tuned]
        if "model" in reads:
            files += [file for run in runs for file in self.model(run)]
        if "tokenizer" in reads:
            files += [self.at("tokenizers", f"{run.name}.csv") for run in runs]
        for data in sorted(needs.sets):
            if data.kind == "text":
                files += [self.set(data)] * ("text" in reads) + [self.set_report(data)] * ("report" in reads)
            if data.kind == "bitext":
                lang = data.languages[0]
                files += [file for run in runs if covers_language(run, lang) for file in self.distances(run, lang)]
        for corpus in sorted({data.name for data in needs.sets if data.kind == "parallel"}):
            compared = [run for run in runs if isinstance(run, self.catalog.known[item].compares)]
            files += [self.at("similarity", run.path(), f"{corpus}.csv") for run in compared]
        return sorted(files)

    def printed_numbers(self, item: str) -> list[str]:
        """What the paper printed, and the spread it states, by which its numbers are judged; a new item has none."""
        paper = item.split("/")[0]
        stated = ["align-predict/claims.csv"] if paper in ("align-predict", "talk") else []
        names = [f"{item}.csv", *stated] if item_kind(item) == "table" else [f"{paper}/figure_readings.csv"]
        return [tracked(f"resources/papers/{name}") for name in names if (_PAPERS / name).is_file()]

    def make_item(self, item: str) -> Job:
        """A table or figure."""
        inputs = {"results": self.item_results(item), "printed": self.printed_numbers(item), "config": self.config_file}
        if item_kind(item) == "table":
            templates = ("table.html", "table_file.html", "table.css")
            inputs["templates"] = [tracked(f"resources/report/{name}") for name in templates]
        return Job(f"make_{item_kind(item)}", tuple(item_files(self.results, item).values()), inputs, item)

    def gather_results(self) -> Job:
        """All scores and similarities as tidy files."""
        similarity = self.at("similarity/")
        files = [file for file in self._all_results if file.startswith(similarity) or file.endswith("/scores.json")]
        return Job("gather_results", tuple(self.gathered), {"results": files, "config": self.config_file})

    def make_verdicts(self) -> Job:
        """Verdicts on numbers and claims. Some claims are about the data, and some about single distances."""
        sets = sorted(self.catalog.sets())
        distances = self.at("distances/")
        inputs: Files = {
            "made": [item_files(self.results, item)["csv"] for item in self.catalog.items],
            "reports": [self.set_report(data) for data in sets],
            "texts": [self.set(data) for data in sets if data.kind == "text"],
            "distances": [file for file in self._all_results if file.startswith(distances)],
            "tolerances": tracked("resources/papers/tolerances.yaml"),
            "claims": [
                tracked(f"resources/papers/{name}")
                for name in map("{}/claims.csv".format, self.config["papers"])
                if (_PAPERS / name).is_file()
            ],
            "config": self.config_file,
        }
        return Job("make_verdicts", tuple(self.verdicts.values()), inputs)

    def make_report(self) -> Job:
        """The page, with the provenance of every item."""
        made = (run for run in self.catalog.runs() if not isinstance(run, Base) or self.catalog.made_here(run.name))
        assets = sorted(file.name for file in (ROOT / "resources" / "report").iterdir() if file.is_file())
        inputs: Files = self.verdicts | {
            "made": [file for item in self.catalog.items for file in item_files(self.results, item).values()],
            "results": self._all_results,
            "training": sorted(self.at(run.path(), "training.json") for run in made),
            "assets": [tracked(f"resources/report/{name}") for name in assets],
            "differences": tracked("docs/understand/differences.md"),
            "config": self.config_file,
        }
        if self._covers(self.catalog.items):
            inputs["coverage"] = self.coverage
        return Job("make_report", tuple(self.page.values()), inputs)

    @cached_property
    def _all_results(self) -> list[str]:
        """Every result that some item is made from, without models, which are large and no result."""
        files = {file for item in self.catalog.items for file in self.item_results(item)}
        models = (f"{self.results}/models/", f"{self.downloads}/")
        return sorted(file for file in files if file.startswith(f"{self.results}/") and not file.startswith(models))


_PAPERS = ROOT / "resources" / "papers"
_SPLITS = (("texts", "train"), ("dev", "dev"))


def _benchmark(run: Tuned) -> str:
    return f"{run.model}/{run.preset}-{run.source}/{run.init}-seed{run.seed}.tsv"
