"""How much work a job is: optimiser steps, sentences, tokens, pairs or bytes, and the shape of its model.

Also how many entries a set has, and how much disk the models of a run take. Imported by the plan, so it stays light.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from crossalign.catalog.addresses import Adapted, Base, Run, Tuned, is_continual, model_of, trial_of
from crossalign.catalog.config import pair_count
from crossalign.catalog.runs import Catalog
from crossalign.catalog.sets import DataSet
from crossalign.catalog.studied import HUB, place_of, shape_of
from crossalign.catalog.targets import evaluation_sets, ner_sentences, preset, training_sets
from crossalign.catalog.trained_models import texts_of, trained_model, trained_vocabulary
from crossalign.fetch.register import Dataset, Model
from crossalign.plan.jobs import Job
from crossalign.runtime.errors import UserError

# Word pieces of a sentence of raw text, and its end, in a vocabulary made for other languages, such as mBERT's for its
# unseen ones, and in one that was trained on such text: 30 and 18 in the rehearsal, 22 in the demo.
PIECES = 30
OWN_PIECES = 22
# A download whose size the register does not say.
USUAL_BYTES = 20_000_000
# Where nothing is known of a set.
USUAL_SIZE = 1000
# Word pieces that occur in a training set, hence rows of the embeddings that a fine-tuning writes: English EWT has
# about 12,000 of mBERT's, MultiNLI 25,000.
TOUCHED_ROWS = 20_000
# A model whose size the register does not say, such as one of a single language: as BERT base.
USUAL = Model("", "", "", None, "", "", 110_000_000, 12, 768, "", "")


class Sizes:
    """Answers for one config; `folder` is where its results lie, `register` the file of published sizes."""

    def __init__(self, config: dict, folder: Path, register: Path, root: Path) -> None:
        self._config = config
        self._folder = folder
        self._known: dict[DataSet, int] = {}
        world = config.get("world")
        self._world = yaml.safe_load((root / world).read_text(encoding="utf-8")) if world else None
        self._published = (lambda name: None) if world else published_sizes(register)

    def of(self, data: DataSet) -> int:
        """The number of entries of a set."""
        if data not in self._known:
            self._known[data] = self._counted(data) or self._fold(data) or self._stated(data) or USUAL_SIZE
        return self._known[data]

    def _counted(self, data: DataSet) -> int | None:
        report = (self._folder / data.path()).with_suffix(".report.json")
        try:
            return json.loads(report.read_text(encoding="utf-8"))["kept"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _fold(self, data: DataSet) -> int | None:
        """Of five folds three are for training and one each for choosing and testing."""
        if not data.fold:
            return None
        whole = self.of(DataSet(data.kind, data.plain, "test"))
        return max(1, whole * 3 // 5 if data.split == "train" else whole // 5)

    def _stated(self, data: DataSet) -> int | None:
        if data.kind == "bitext":
            return self._config["adjust"]["pool"]
        if data.kind == "parallel" and data.name == "xnliext":
            return self._config["anc"]["sentences"]
        if self._world is not None:
            return _of_world(self._world, data)
        published = self._published(f"{data.kind}/{data.plain}/{data.split}")
        most = ner_sentences(self._config, data) if data.kind == "ner" else None
        return min(published, most) if published and most else published


def published_sizes(register: Path) -> Callable[[str], int | None]:
    """The size of a set such as `trees/en_ewt/train`, where the register says it; the first pattern that fits holds."""
    rows = _read(register)
    return lambda name: next((size for pattern, size in rows if fnmatchcase(name, pattern)), None)


def _read(register: Path) -> list[tuple[str, int]]:
    """Patterns of sets with their sizes."""
    with register.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        try:
            return [(row["set"], int(row["size"])) for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{register}, line {rows.line_num}: expected set, size and source: {error}") from error


def _of_world(world: dict, data: DataSet) -> int | None:
    """What the settings of the demo world say of a set."""
    family, split = data.family, data.split
    if data.kind == "trees":
        return world["pud"]["sentences"] if family.endswith("_pud") else world["treebanks"].get(family, {}).get(split)
    if data.kind == "parallel":
        return world["pud"]["sentences"]
    if data.kind == "ner":
        entry = world["conll2003"] if family == "conll2003" else world["wikiann"]
        if family == "wikiann":
            entry = entry["small" if data.languages[0] in entry["small"]["languages"] else "large"]
        return entry.get(split)
    if data.kind == "nli":
        return world["nli"]["train"] if split == "train" else world["nli"]["xnli"].get(split)
    if data.kind == "qa":
        entry = {
            "squad": world["qa"],
            "squadmt": world["qa"]["translated"],
            "xquad": {"test": world["qa"]["xquad"]["questions"]},
        }
        return (entry | {key: world["qa"][key] for key in ("mlqa", "tydiqa")}).get(family, {}).get(split)
    unseen = world["text"]["demo"]
    return unseen["narabizi"] if family == "narabizi" else unseen["cc100" if family == "cc100" else "unseen"]


@dataclass(frozen=True)
class Work:
    """`rule` and `task` find a row of costs, which says what `units` are; jobs of one rule and `group` cost alike.

    `pieces` are the scores over the vocabulary for a token of language modelling, on average. `tests` are the entries
    on which a job tests the model that it has trained.
    """

    rule: str
    task: str = ""
    units: float = 1
    batch: int = 0
    shape: tuple[int, int] | None = None
    group: str = ""
    pieces: int = 0
    tests: int = 0


class Works:
    """Answers for the jobs of one config."""

    def __init__(
        self, catalog: Catalog, sizes: Sizes, files: Mapping[str, Dataset], models: Mapping[str, Model]
    ) -> None:
        self._catalog, self._config = catalog, catalog.config
        self._sizes, self._files, self._models = sizes, files, models
        self._shapes: dict[str, tuple[int, int]] = {}

    def of(self, job: Job) -> Work:
        """The work of a job."""
        match job.rule:
            case "finetune" | "finetune_and_test":
                return self._finetune(job)
            case "evaluate":
                return self._evaluate(job.subject)
            case "train_bilstm":
                return self._bilstm(job.subject)
            case "adjust_model":
                return self._adjust(job.subject)
            case "adapt_to_text":
                sets = [data for data in self._catalog.sets_of(job.subject) if data.split == "train"]
                tokens = self._tokens(sets) * self._config["mlm"]["epochs"]
                return self._language_model(job, tokens, self._config["mlm"]["masking"])
            case "train_vocabulary":
                texts = texts_of(trained_vocabulary(self._config, job.subject))
                return Work(job.rule, units=self._tokens(texts) / 1000)
            case "pretrain":
                values = trained_model(self._config, job.subject.name)
                if values.get("epochs"):
                    tokens = self._tokens(texts_of(values), OWN_PIECES) * values["epochs"]
                else:
                    tokens = values["steps"] * values["batch"] * values["block"]
                share = 1 if values["objective"] == "clm" else values["masking"]
                return self._language_model(job, tokens, share)
            case "embed_sentences" | "compare_languages":
                return self._vectors(job)
            case "embed_words":
                return Work(job.rule, units=self._config["adjust"]["word_pairs"], shape=self.shape(job.subject))
            case "download_file" | "download_model" | "download_labelled":
                return _by_size(job, self.download_bytes(job.rule, job.subject) / 1e6)
        return _by_size(job, self._sizes.of(job.subject) if isinstance(job.subject, DataSet) else 1)

    def _finetune(self, job: Job) -> Work:
        run = job.subject
        values = preset(self._config, run.preset)
        # A model whose settings are searched is priced with its recipe's batch: which is best is not known yet.
        batch = trial[0] if (trial := trial_of(run.init)) else values["batch"]
        task = run.task + "-continual" * is_continual(run.init)
        steps = self._steps(run, batch, values["epochs"], values.get("examples"))
        tests = self._tests(run) if job.rule == "finetune_and_test" else 0
        # An adjusted model is tested on its own language alone, the original on all.
        group = f"{run.preset}-{run.source}-{batch}-{task}-{tests}"
        return Work("finetune", task, steps, batch, self.shape(run), group, tests=tests)

    def _steps(self, run: Tuned, batch: int, epochs: int, most: int | None = None) -> int:
        examples = self._sizes.of(training_sets(self._config, run)["train"])
        return math.ceil(min(examples, most or examples) / batch) * epochs

    def _tests(self, run: Tuned) -> int:
        return sum(map(self._sizes.of, evaluation_sets(self._config, run)))

    def _evaluate(self, run: Tuned) -> Work:
        units = self._tests(run)
        # How many entries are scored tells trials of the grid search, which see one set, from the others.
        return Work("evaluate", run.task, units, 0, self.shape(run), f"{run.preset}-{run.source}-{units}")

    def _bilstm(self, run: Tuned) -> Work:
        values = self._config["bilstm"]
        steps = self._steps(run, values["batch"], values["epochs"])
        shape = (values["layers"], values["hidden"])
        return Work("train_bilstm", run.task, steps, values["batch"], shape, f"{run.preset}-{run.source}")

    def _adjust(self, run: Adapted) -> Work:
        values, pairs = self._config["pull"], pair_count(run.adaptation.pairs)
        steps = math.ceil(pairs / values["batch"]) * values["epochs"]
        return Work("adjust_model", "", steps, values["batch"], self.shape(run), f"{run.base}-{pairs}")

    def _tokens(self, texts: list[DataSet], pieces: int = PIECES) -> float:
        return pieces * sum(map(self._sizes.of, texts))

    def _language_model(self, job: Job, tokens: float, share: float) -> Work:
        """Training on so many tokens, of which a share is guessed."""
        pieces = round(share * self._vocabulary(job.subject))
        return Work(job.rule, "", tokens / 1000, 0, self.shape(job.subject), job.subject.name, pieces)

    def _vocabulary(self, run: Base | Adapted) -> int:
        """Pieces of a vocabulary; a published model has as many as its parameters beyond the layers allow."""
        name = run.base if isinstance(run, Adapted) else run.name
        if entry := trained_model(self._config, name):
            name = entry["vocabulary"]
            if vocabulary := trained_vocabulary(self._config, name):
                return vocabulary["size"]
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
        shape = shape_of(self._config, name)
        return shape.get("layers", USUAL.layers), shape.get("neurons", USUAL.neurons)

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
        if rule == "download_labelled":
            return USUAL_BYTES
        model = self._models[name]
        return model.bytes or 4 * (model.parameters or USUAL.parameters)


def _by_size(job: Job, units: float) -> Work:
    """Work that its size alone tells from others of its rule."""
    return Work(job.rule, units=units, group=f"{units:g}")


def tuned_bytes(shape: tuple[int, int]) -> int:
    """A fine-tuned model in fp32: what training changed, which is all layers and the embeddings of words that occur."""
    layers, neurons = shape
    return 4 * (12 * layers * neurons**2 + TOUCHED_ROWS * neurons)


def model_disk(
    config: dict, trainings: Iterable[Job], models: dict[str, Model], shape: Callable[[Run], tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Number and bytes of the models that a run makes, by what becomes of them; `shape` tells layers and neurons."""
    found: dict[str, list[int]] = {}
    for job in trainings:
        run = job.subject
        if isinstance(run, Tuned):
            deleted = job.rule == "finetune_and_test"
            label = "fine-tuned, deleted after their last use" if deleted else "fine-tuned, kept"
            found.setdefault(label, []).append(tuned_bytes(_shape(config, run, shape)))
        else:
            name = run.base if isinstance(run, Adapted) else run.name
            whole = 4 * (models.get(name, USUAL).parameters or USUAL.parameters)
            # Models that are made here or lie in a folder may have any size, whatever the register says of their names.
            known = place_of(config, name) == HUB and not trained_model(config, name)
            size = whole if known else tuned_bytes(shape(run))
            found.setdefault("adapted or pretrained", []).append(size)
    return {label: (len(sizes), sum(sizes)) for label, sizes in sorted(found.items())}


def _shape(config: dict, run: Tuned, shape: Callable[[Run], tuple[int, int]]) -> tuple[int, int]:
    """A BiLSTM starts from no model; its layers count as much as those of an encoder as wide."""
    return (config["bilstm"]["layers"], config["bilstm"]["hidden"]) if run.model == "bilstm" else shape(run)


def readable(size: float) -> str:
    """12.3 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
