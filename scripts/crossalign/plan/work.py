"""How much work a job is: optimiser steps, sentences, tokens, pairs or bytes, and the shape of its model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.addresses import Adapted, Base, Run, Tuned, is_continual, model_of, trial_of
from crossalign.catalog.config import pair_count
from crossalign.catalog.inputs import Job
from crossalign.catalog.runs import Catalog
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import evaluation_sets, preset, training_sets
from crossalign.catalog.trained_models import own_models, own_vocabularies, texts_of
from crossalign.fetch.register import Dataset, Model
from crossalign.plan.disk import USUAL
from crossalign.plan.sizes import Sizes

# Word pieces of a sentence of raw text, and its end: 22 in the demo's texts, more in mBERT's unseen languages.
PIECES = 30
# A download whose size the register does not say.
USUAL_BYTES = 20_000_000


@dataclass(frozen=True)
class Work:
    """`rule` and `task` find a row of costs, which says what `units` are; jobs of one rule and `group` cost alike.

    `pieces` are the scores over the vocabulary for a token of language modelling, on average.
    """

    rule: str
    task: str = ""
    units: float = 1
    batch: int = 0
    shape: tuple[int, int] | None = None
    group: str = ""
    pieces: int = 0


class Works:
    """Answers for the jobs of one config."""

    def __init__(
        self, catalog: Catalog, sizes: Sizes, files: Mapping[str, Dataset], models: Mapping[str, Model], root: Path
    ) -> None:
        self._catalog, self._config = catalog, catalog.config
        self._sizes, self._files, self._models, self._root = sizes, files, models, root
        self._shapes: dict[str, tuple[int, int]] = {}

    def of(self, job: Job) -> Work:
        """The work of a job."""
        match job.rule:
            case "finetune" | "finetune_random":
                return self._finetune(job.subject)
            case "evaluate":
                return self._evaluate(job.subject)
            case "train_bilstm":
                return self._bilstm(job.subject)
            case "adjust_model":
                return self._adjust(job.subject)
            case "adapt_to_text" | "pretrain_monolingual" | "train_vocabulary":
                return self._text(job)
            case "train_own_vocabulary":
                sets = texts_of(own_vocabularies(self._config)[job.subject])
                return Work(job.rule, units=PIECES * sum(map(self._sizes.of, sets)) / 1000)
            case "pretrain_own":
                values = own_models(self._config)[job.subject.name]
                tokens = values["steps"] * values["batch"] * values["block"]
                return self._language_model(job, tokens, 1 if values["objective"] == "clm" else values["masking"])
            case "pretrain_norm_scheme":
                values = self._config["pretraining"]
                tokens = values["steps"] * values["batch"] * values["block"] / values["gpus"]
                return self._language_model(job, tokens, values["masking"])
            case "embed_sentences" | "compare_languages":
                return self._vectors(job)
            case "embed_words":
                return Work(job.rule, units=self._config["adjust"]["word_pairs"], shape=self.shape(job.subject))
            case "download_file" | "download_model":
                return Work(job.rule, units=self.download_bytes(job.rule, job.subject) / 1e6)
        return Work(job.rule, units=self._sizes.of(job.subject) if isinstance(job.subject, DataSet) else 1)

    def _finetune(self, run: Tuned) -> Work:
        values = preset(self._config, run.preset)
        # A model whose settings are searched is priced with its recipe's batch: which is best is not known yet.
        batch = trial[0] if (trial := trial_of(run.init)) else values["batch"]
        task = run.task + "-continual" * is_continual(run.init)
        steps = self._steps(run, batch, values["epochs"], values.get("examples"))
        return Work("finetune", task, steps, batch, self.shape(run), f"{run.preset}-{run.source}-{batch}-{task}")

    def _steps(self, run: Tuned, batch: int, epochs: int, most: int | None = None) -> int:
        examples = self._sizes.of(training_sets(self._config, run)["train"])
        return math.ceil(min(examples, most or examples) / batch) * epochs

    def _evaluate(self, run: Tuned) -> Work:
        units = sum(map(self._sizes.of, evaluation_sets(self._config, run)))
        # How many entries are scored tells trials of the grid search, which see one set, from the others.
        return Work("evaluate", run.task, units, 0, self.shape(run), f"{run.preset}-{run.source}-{units}")

    def _bilstm(self, run: Tuned) -> Work:
        values = self._config["bilstm"]
        steps = self._steps(run, values["batch"], values["epochs"])
        shape = (values["layers"], values["hidden"])
        return Work("train_bilstm", run.task, steps, values["batch"], shape, f"{run.preset}-{run.source}")

    def _adjust(self, run: Adapted) -> Work:
        values, pairs = self._config["adjustment"], pair_count(run.adaptation.pairs)
        steps = math.ceil(pairs / values["batch"]) * values["epochs"]
        return Work("adjust_model", "", steps, values["batch"], self.shape(run), f"{run.base}-{pairs}")

    def _text(self, job: Job) -> Work:
        sets = [data for data in self._catalog.sets_of(job.subject) if data.split == "train"]
        tokens = PIECES * sum(map(self._sizes.of, sets)) / 1000
        if job.rule == "train_vocabulary":
            return Work(job.rule, units=tokens)
        own = self._config["mlm"] if job.rule == "adapt_to_text" else self._config["mlm"]["monolingual"]
        return self._language_model(job, 1000 * tokens * own["epochs"], self._config["mlm"]["masking"])

    def _language_model(self, job: Job, tokens: float, share: float) -> Work:
        """Training on so many tokens, of which a share is guessed."""
        pieces = round(share * self._vocabulary(job.subject))
        return Work(job.rule, "", tokens / 1000, 0, self.shape(job.subject), job.subject.name, pieces)

    def _vocabulary(self, run: Base | Adapted) -> int:
        """Pieces of a vocabulary; a published model has as many as its parameters beyond the layers allow."""
        name = run.base if isinstance(run, Adapted) else run.name
        if own := own_models(self._config).get(name):
            return own_vocabularies(self._config)[own["vocabulary"]]["size"]
        if name.startswith("mono-"):
            return self._config["mlm"]["monolingual"]["vocabulary"]
        if name in self._catalog.pretrained:
            name = self._config["pretraining"]["vocabulary"]
        model = self._models.get(name, USUAL)
        layers, neurons = model.layers or USUAL.layers, model.neurons or USUAL.neurons
        return ((model.parameters or USUAL.parameters) - 12 * layers * neurons**2) // neurons

    def _vectors(self, job: Job) -> Work:
        languages = self._catalog.languages(job.subject, job.detail)
        sentences = self._sizes.of(DataSet("parallel", job.detail, languages[0]))
        start = model_of(job.subject) if isinstance(job.subject, Tuned) else job.subject
        name = start.base if isinstance(start, Adapted) else start.name
        compared = job.rule == "compare_languages"
        many = len(languages) - compared
        indexes = self._catalog.indexes(job.subject, job.detail) if compared else []
        # Correlations of single neurons cost next to nothing beside products of all with all.
        task = "anc" if indexes and all(index.startswith("anc") for index in indexes) else ""
        return Work(job.rule, task, many * sentences, 0, self.shape(job.subject), f"{name}-{job.detail}-{many}")

    def shape(self, run: Run) -> tuple[int, int]:
        """Layers and neurons of a model."""
        start = model_of(run) if isinstance(run, Tuned) else run
        name = start.base if isinstance(start, Adapted) else start.name
        if name not in self._shapes:
            self._shapes[name] = self._shape(name)
        return self._shapes[name]

    def _shape(self, name: str) -> tuple[int, int]:
        usual = (USUAL.layers, USUAL.neurons)
        if own := own_models(self._config).get(name):
            return own["layers"], own["hidden"]
        if name.startswith("mono-") or name in self._catalog.pretrained:
            values = self._config["mlm"]["monolingual"] if name.startswith("mono-") else self._config["pretraining"]
            return values["layers"], values["hidden"]
        if self._config["models"] == "hub":
            model = self._models.get(name, USUAL)
            return model.layers or usual[0], model.neurons or usual[1]
        file = self._root / self._config["models"] / name / "config.json"
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return usual
        return (
            values.get("num_hidden_layers") or values.get("num_layers") or usual[0],
            values.get("hidden_size") or values.get("d_model") or usual[1],
        )

    def vector_bytes(self, job: Job) -> float:
        """What the vectors of an embedding job take on disk until they are compared."""
        layers, neurons = self.shape(job.subject)
        return 4 * (layers + 1) * neurons * self.of(job).units

    def download_bytes(self, rule: str, name: str) -> float:
        """The size of a download, from the register or guessed; a model's is four bytes per parameter."""
        if self._config.get("world"):
            return 0
        if rule == "download_file":
            return self._files[name].bytes or USUAL_BYTES
        model = self._models[name]
        return model.bytes or 4 * (model.parameters or USUAL.parameters)
