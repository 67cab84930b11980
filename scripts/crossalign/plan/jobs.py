"""Every job behind a result, worked out from the catalog in a second; Snakemake takes many for the same.

The rules are the truth. This follows them in plain Python, and a test holds its counts against a dry run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.addresses import Adapted, Adjustment, Base, Run, Tuned, is_continual, model_of, trial_of
from crossalign.catalog.runs import Catalog
from crossalign.catalog.search import trials_of
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.catalog.targets import evaluation_sets, training_sets
from crossalign.catalog.trained_models import own_models, own_vocabularies, texts_of
from crossalign.catalog.wanted import wanted_languages
from crossalign.papers.adjust.items import knows, pool_set


@dataclass(frozen=True)
class Job:
    """One job: the files that others read from it, and the jobs that it waits for, each named by its first file.

    `subject` is what it is about (a run, a data set, an item, a register's name), `detail` a corpus or a language.
    """

    rule: str
    outputs: tuple[str, ...]
    needs: tuple[str, ...] = ()
    subject: Run | DataSet | str = ""
    detail: str = ""
    gpus: int = 0
    threads: int = 1
    benchmark: str = ""

    @property
    def name(self) -> str:
        return self.outputs[0]


class Jobs:
    """The jobs of one config, by name. Asking for a result adds the job that makes it, and all before it."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.config = catalog.config
        self.results = f"results/{self.config['run']}"
        self.downloads = self.config["downloads"]["folder"]
        self.found: dict[str, Job] = {}

    def _add(self, job: Job) -> str:
        self.found[job.name] = job
        return job.name

    def _path(self, *parts: str) -> str:
        return "/".join((self.results, *parts))

    # Downloads

    def file(self, path: str) -> str:
        """A raw file; in the demo it comes from the mirror that the world makes."""
        name = f"{self.downloads}/{path}"
        if name not in self.found:
            self._add(Job("download_file", (name,), self._world(), path))
        return name

    def _world(self) -> tuple[str, ...]:
        if not self.config.get("world"):
            return ()
        name = self._path("mirror", "SHA256SUMS")
        if name not in self.found:
            self._add(Job("make_world", (name,), subject="world", threads=2, benchmark="make_world.tsv"))
        return (name,)

    def published(self, model: str) -> list[str]:
        """A model from the hub; none where the models lie in a folder."""
        if self.config["models"] != "hub":
            return []
        name = f"{self.downloads}/models/{model}/complete.json"
        return [self._add(Job("download_model", (name,), subject=model))]

    # Data

    def prepared(self, data: DataSet) -> str:
        """A prepared set; both splits of a text are made together."""
        text = data.kind == "text"
        if text:
            data = DataSet(data.kind, data.name, "train")
        name = self._path(data.path())
        if name not in self.found:
            needs = tuple(self.file(path) for path in raw_files(data))
            others = (self._path(DataSet(data.kind, data.name, "dev").path()),) if text else ()
            marked = {"text": f"prepare_text/{data.name}.tsv", "bitext": f"prepare_bitext/{data.name}-{data.split}.tsv"}
            benchmark = marked.get(data.kind, "")
            self._add(Job(f"prepare_{data.kind}", (name, *others), needs, data, benchmark=benchmark))
        return name

    def links(self, data: DataSet, pieces: bool = False) -> str:
        """The word links of a bitext, or those of its word pieces."""
        name = self._path("links", data.name, f"{data.split}{'.pieces' if pieces else ''}.pharaoh")
        if name not in self.found:
            needs = (self.prepared(data), *(self.vocabulary_of(self.config["adjust"]["base"]) if pieces else ()))
            rule = "align_pieces" if pieces else "align_bitext"
            benchmark = f"{rule}/{data.name}-{data.split}.tsv"
            self._add(Job(rule, (name,), needs, data, threads=2, benchmark=benchmark))
        return name

    # Models

    def model(self, run: Run) -> list[str]:
        """The job that makes a model to start from; none where it lies in a folder."""
        name = self._path(run.path(), "model.safetensors")
        if name in self.found:
            return [name]
        if isinstance(run, Adapted):
            return [self._adapted(name, run)]
        if run.name.startswith("mono-"):
            return [self._monolingual(name, run)]
        if run.name in own_models(self.config):
            needs = (*self.vocabulary_of(run.name), *self._texts(run))
            return [
                self._add(Job("pretrain_own", (name,), needs, run, gpus=1, benchmark=f"pretrain_own/{run.name}.tsv"))
            ]
        if run.name in self.catalog.pretrained:
            vocabulary = self.vocabulary_of(self.config["pretraining"]["vocabulary"])
            needs = (*vocabulary, *self._texts(run))
            gpus = self.config["pretraining"]["gpus"]
            benchmark = f"pretrain_norm_scheme/{run.name}.tsv"
            return [self._add(Job("pretrain_norm_scheme", (name,), needs, run, gpus=gpus, benchmark=benchmark))]
        return self.published(run.name)

    def vocabulary_of(self, model: str) -> list[str]:
        """The job behind a base model's vocabulary: a model of one's own has it before it is trained."""
        own = own_models(self.config)
        return [self.vocabulary(own[model]["vocabulary"])] if model in own else self.model(Base(model))

    def vocabulary(self, vocabulary: str) -> str:
        """A vocabulary of one's own."""
        name = self._path("vocabularies", vocabulary, "tokenizer.json")
        if name not in self.found:
            texts = map(self.prepared, texts_of(own_vocabularies(self.config)[vocabulary]))
            self._add(Job("train_own_vocabulary", (name,), tuple(texts), vocabulary))
        return name

    def _texts(self, run: Run) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.prepared(data) for data in self.catalog.sets_of(run) if data.kind == "text"))

    def _adapted(self, name: str, run: Adapted) -> str:
        if isinstance(run.adaptation, Adjustment):
            rule, needs = "adjust_model", self._pulled(run)
        else:
            rule, needs = "adapt_to_text", (*self.model(Base(run.base)), *self._texts(run))
        return self._add(Job(rule, (name,), needs, run, gpus=1, benchmark=f"{rule}/{run.name}-seed{run.seed}.tsv"))

    def _pulled(self, run: Adapted) -> tuple[str, ...]:
        """Sentence pairs, their links and the model as it was before."""
        pool = pool_set(self.config, run.adaptation.lang)
        links = self.links(pool, pieces=run.adaptation.aggregation == "subword")
        return (*self.model(Base(run.base)), self.prepared(pool), links)

    def _monolingual(self, name: str, run: Base) -> str:
        texts = self._texts(run)
        vocabulary = self._add(
            Job("train_vocabulary", (self._path("vocabularies", run.name, "tokenizer.json"),), texts, run)
        )
        needs = (vocabulary, *texts)
        benchmark = f"pretrain_monolingual/{run.name}.tsv"
        return self._add(Job("pretrain_monolingual", (name,), needs, run, gpus=1, benchmark=benchmark))

    def tuned(self, run: Tuned) -> str:
        """A fine-tuned model."""
        folder = self._path(run.path(), "model")
        outputs = (f"{folder}/model.safetensors", f"{folder}/config.json")
        if trial_of(run.init):
            # Its account is what a search reads; its weights are deleted as soon as it is scored.
            outputs = (self._path(run.path(), "training.json"),)
        name = outputs[0]
        if name not in self.found:
            start = model_of(run)
            needs = [*map(self.prepared, training_sets(self.config, run).values()), *self.model(start)]
            needs += map(self.tuned, trials_of(self.config, run))
            if is_continual(run.init):
                needs += self._pulled(start)
            rule = "finetune" if run.init == "ref" or is_continual(run.init) else "finetune_random"
            benchmark = f"finetune/{_benchmark(run)}"
            self._add(Job(rule, outputs, tuple(dict.fromkeys(needs)), run, gpus=1, benchmark=benchmark))
        return name

    def scores(self, run: Tuned) -> str:
        """The scores of a fine-tuned model on all its sets."""
        name = self._path(run.path(), "scores.json")
        if name in self.found:
            return name
        sets = map(self.prepared, evaluation_sets(self.config, run))
        if run.model == "bilstm":
            needs = (*map(self.prepared, training_sets(self.config, run).values()), *sets)
            rule, benchmark = "train_bilstm", f"train_bilstm/{run.recipe}-{run.source}-seed{run.seed}.tsv"
        else:
            needs = (self.tuned(run), *self.model(model_of(run)), *sets)
            rule, benchmark = "evaluate", f"evaluate/{_benchmark(run)}"
        return self._add(Job(rule, (name,), tuple(dict.fromkeys(needs)), run, gpus=1, benchmark=benchmark))

    def _embedded(self, run: Run) -> tuple[str, ...]:
        if not isinstance(run, Tuned):
            return tuple(self.model(run))
        return (*self.model(model_of(run)), self.tuned(run))

    # Results

    def similarity(self, run: Run, corpus: str) -> str:
        """The similarities of one model on one corpus, and the vectors behind them."""
        name = self._path("similarity", run.path(), f"{corpus}.csv")
        if name not in self.found:
            languages = wanted_languages(self.catalog, run, corpus)
            texts = [self.prepared(DataSet("parallel", corpus, lang)) for lang in languages]
            folder = self._path("embeddings", run.path(), corpus)
            needs, place = (*texts, *self._embedded(run)), f"{run.path()}-{corpus}.tsv"
            vectors = self._add(
                Job("embed_sentences", (folder,), needs, run, corpus, gpus=1, benchmark=f"embed_sentences/{place}")
            )
            benchmark = f"compare_languages/{place}"
            self._add(Job("compare_languages", (name,), (vectors,), run, corpus, benchmark=benchmark))
        return name

    def distances(self, run: Run, lang: str) -> str:
        """Distances of linked words in one model, and the vectors behind them."""
        name = self._path("distances", run.path(), f"{lang}.csv")
        if name not in self.found:
            pool = pool_set(self.config, lang)
            needs = (self.prepared(pool), self.links(pool), *self._embedded(run))
            folder = self._path("embeddings", run.path(), "words")
            outputs = tuple(f"{folder}/{lang}-{kind}.npy" for kind in ("related", "unrelated"))
            benchmark = f"embed_words/{run.path()}-{lang}.tsv"
            vectors = self._add(Job("embed_words", outputs, needs, run, lang, gpus=1, benchmark=benchmark))
            self._add(Job("measure_distances", (name,), (vectors,), run, lang))
        return name

    def item(self, item: str) -> str:
        """A table or figure."""
        table = Path(item).name.startswith("table")
        extensions = ("csv", "tex", "html", "json") if table else ("svg", "pdf", "png", "csv")
        outputs = tuple(self._path("tables" if table else "figures", f"{item}.{extension}") for extension in extensions)
        if outputs[0] not in self.found:
            runs, sets = (
                sorted(self.catalog.needs(item).runs, key=lambda run: run.path()),
                self.catalog.needs(item).sets,
            )
            needs = [self.scores(run) for run in runs if isinstance(run, Tuned)]
            for corpus in sorted({data.name for data in sets if data.kind == "parallel"}):
                needs += [self.similarity(run, corpus) for run in runs]
            needs += [self.prepared(data) for data in sorted(sets) if data.kind == "text"]
            for lang in (data.languages[0] for data in sorted(sets) if data.kind == "bitext"):
                needs += [self.distances(run, lang) for run in runs if knows(run, lang)]
            self._add(Job("make_table" if table else "make_figure", outputs, tuple(needs), item))
        return outputs[0]

    def page(self) -> str:
        """The verdicts and the page over all items."""
        items = tuple(map(self.item, self.catalog.items))
        files = tuple(self._path(name) for name in ("verdicts.csv", "claims.csv", "claims.json"))
        verdicts = self._add(Job("make_verdicts", files, items))
        pages = tuple(self._path("report", name) for name in ("index.html", "provenance.json"))
        return self._add(Job("make_report", pages, (verdicts, *items)))


def _benchmark(run: Tuned) -> str:
    return f"{run.model}/{run.recipe}-{run.source}/{run.init}-seed{run.seed}.tsv"
