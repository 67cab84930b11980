"""The design of the experiment as sheets: one row for each job, with what it reads and what it is told.

A row is found by its address, which is the part of a path that names what is made: `tuned/mbert/pos-en_ewt/ref/seed1`
lies at `results/<run>/tuned/mbert/pos-en_ewt/ref/seed1`. Its columns are the names of its rule's inputs, with their
files as Snakemake sees them, and `settings`, what the rule's program is told besides.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from crossalign.analysis.indexes import CONTROLLED
from crossalign.catalog.addresses import Adapted, Adjustment, Base, Run, Tuned, is_continual, model_of, parse
from crossalign.catalog.code_hash import SCRIPTS, code_hash
from crossalign.catalog.config import pair_count
from crossalign.catalog.labelled import labelled
from crossalign.catalog.outputs import (
    item_files,
    item_kind,
    link_address,
    model_files,
    set_address,
    tracked,
    tuned_files,
    word_files,
)
from crossalign.catalog.papers import papers
from crossalign.catalog.prepared import prepare_settings
from crossalign.catalog.runs import Catalog, covers_language
from crossalign.catalog.sets import EXTENSIONS, DataSet, mixed_files, pool_set, raw_files, text_set
from crossalign.catalog.studied import HUB, backend_of, model_folder, place_of
from crossalign.catalog.targets import adjust_seeds, bases, evaluation_sets, training_sets, trials_of
from crossalign.catalog.trained_models import is_long, stand_ins, texts_of, trained_model, trained_vocabulary
from crossalign.catalog.trainings import (
    adjustment_settings,
    bilstm_settings,
    finetune_settings,
    mlm_settings,
    pretrain_settings,
    vocabulary_settings,
)
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic
from crossalign.tasks import file_of

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ROOT / "resources" / "papers"
PAPER_TARGETS = {name.replace("-", "_"): name for name in papers()}
TARGETS = ("all", *PAPER_TARGETS, "data", "download")
# Files of a run that an item may read.
RUN_FILES = {"scores": "scores.json", "predictions": "predictions.jsonl.gz", "training": "training.json"}
# The item of unseen languages, beside which the page shows how well they are covered.
COVERED = "talk/table3"
TEMPLATES = ("table.html", "table_file.html", "table.css")
# The sheets, and the columns that each shows, in this order.
SHEETS = {
    "sets": ("program", "sources", "apart", "pool", "model", "settings", "items"),
    "trainings": (
        *("model", "preset", "source", "init", "seed", "train", "dev", "sets", "trials", "texts", "letters"),
        *("vocabulary", "original", "bitext", "links", "settings", "items"),
    ),
    "vectors": ("model", "tuned", "text", "pool", "links", "settings", "items"),
    "comparisons": ("vectors", "related", "unrelated", "model", "texts", "settings", "items"),
    "items": ("title", "results", "printed"),
}
# Of the files in these columns a sheet shows the folder.
FOLDERS = {"model", "tuned", "original", "vocabulary"}
Row = dict[str, object]


class Sheets:
    """The rows behind the chosen items of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog, self.config = catalog, catalog.config
        self.results = f"results/{self.config['run']}"
        self.downloads = self.config["downloads"]["folder"]
        # The merged config, for the programs.
        self.config_file = self.at("config.json")
        self._model_files: dict[str, list[str]] = {}
        self._unasked: dict[str, Row] = {}

    def of(self, address: str, column: str) -> object:
        """What stands in a column of a row; an empty list where it does not have the column."""
        return self.row(address).get(column, [])

    def row(self, address: str) -> Row:
        """A row of the sheets, or of what no chosen item asks for and somebody names all the same."""
        if address not in self.rows and address not in self._unasked:
            self._unasked[address] = self._made_up(address)
        return self.rows.get(address) or self._unasked[address]

    def _made_up(self, address: str) -> Row:
        kind, _, rest = address.partition("/")
        parts = address.split("/")
        if kind in ("models", "tuned"):
            return self._training(parse(address))
        if kind == "vocabularies":
            return self._vocabulary(rest)
        if kind == "data" and parts[1] in EXTENSIONS:
            return self._set(DataSet(parts[1], parts[2], parts[3] if len(parts) > 3 else "train"))
        if kind == "links":
            return self._links(DataSet("bitext", parts[1], parts[2].partition(".")[0]), parts[2].endswith(".pieces"))
        if kind in ("tables", "figures") and rest in self.catalog.known:
            return self._item(rest)
        raise UserError(f"no chosen table or figure asks for '{address}'; what they ask for: {self.at('plan')}/*.tsv")

    def code(self, address: str, *programs: str) -> str:
        """The hash of a job's programs and of what they load for it alone, with the order of the files of a mixture."""
        row = self.row(address) if address else {}
        names = [*(programs or [row["program"]]), *row.get("code", [])]
        return "-".join([code_hash(*names), *filter(None, [row.get("order")])])

    def row_of(self, file: str) -> Row | None:
        """The row of the job that makes a file; None of a file that no row makes."""
        path = Path(file.removeprefix(f"{self.results}/"))
        # `train.conllu`, `train.report.json`, and of vectors of words `wo-related.npy`.
        names = (path.name.rpartition(".")[0], path.name.partition(".")[0], path.name.partition("-")[0])
        places = [*(str(path.with_name(name)) for name in names if name), *map(str, (path, *path.parents))]
        return next((self.rows[place] for place in places if place in self.rows), None)

    # The rows

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Every row, by address."""
        rows = self._sets() | self._trainings() | self._vectors() | self._comparisons() | self._items()
        rows |= {"coverage": self._coverage()} if self.covers(self.catalog.items) else {}
        return rows | {
            "gathered": self._gathered(),
            "verdicts": self._verdicts(),
            "findings": self._findings(),
            "report": self._report(),
        }

    def _sets(self) -> dict[str, Row]:
        found: dict[str, Row] = {}
        asked = self._asked(self.catalog.sets)
        for data in sorted(asked):
            # The two splits of a text are made together.
            row = found.setdefault(set_address(data), {"sheet": "sets", "items": [], "made": [], **self._set(data)})
            row |= {"items": sorted({*row["items"], *asked[data]}), "made": [*row["made"], self.set(data)]}
            if data.kind == "bitext":
                study = self.config["adjust"]["aggregations"]
                found[link_address(data)] = {"sheet": "sets", "items": asked[data], **self._links(data)}
                # Links of pieces are asked for in the language of the sub-word ablation only.
                if data.languages == (study["lang"],) and "subword" in study["values"]:
                    row = self._links(data, pieces=True)
                    found[link_address(data, pieces=True)] = {"sheet": "sets", "items": asked[data], **row}
        return found

    def _links(self, data: DataSet, pieces: bool = False) -> Row:
        row: Row = {"settings": dict(self.config["aligner"]), "pool": self.set(data)}
        return row | ({"model": self.vocabulary_of(bases(self.config, "adjust")[0])} if pieces else {})

    def _set(self, data: DataSet) -> Row:
        own = labelled(self.config, data)
        row: Row = {"sources": self._raw(data), "program": "prepare_labelled.py" if own else f"prepare_{data.kind}.py"}
        if order := mixed_files(f"{data.kind}/{data.plain}"):
            # Snakemake sees that other files are read, not that they are read in another order, and trainings may
            # read the first examples only.
            row["order"] = hashlib.sha256("\n".join(order).encode()).hexdigest()[:12]
        if data.kind == "text" and self.config["pretrain"].get("overlap"):
            row["apart"] = [self.set(found) for found in self.catalog.evaluated(data.languages[0])]
        return row | {"settings": prepare_settings(self.config, data)}

    def _raw(self, data: DataSet) -> list[str]:
        """The files that a set is prepared from; a download of several is named by the list of them."""
        own = labelled(self.config, data)
        if own and not own.on_hub:
            return [os.path.relpath(file) for file in own.local_files()]
        return [f"{self.downloads}/{path}" for path in ([own.on_hub.complete] if own else raw_files(data))]

    def _trainings(self) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for run, items in self._asked(self.catalog.runs).items():
            for made in self._stages(run):
                found[made.path()] = {"sheet": "trainings", "items": items, **self._training(made)}
        for name in sorted({entry["vocabulary"] for entry in self._pretrained(found)}):
            if trained_vocabulary(self.config, name):
                found[f"vocabularies/{name}"] = {"sheet": "trainings", "items": [], **self._vocabulary(name)}
        return found

    def _vocabulary(self, name: str) -> Row:
        entry = trained_vocabulary(self.config, name)
        if not entry:
            raise UserError(f"pretrain.vocabularies: no vocabulary '{name}' is learnt here")
        texts = {"texts": self.texts(texts_of(entry)), "letters": self.texts(texts_of(entry.get("letters")))}
        return {"settings": vocabulary_settings(self.config, name), **texts}

    def _stages(self, run: Run) -> list[Run]:
        """A model and those of its earlier stages; nothing of one that is not made here."""
        if not isinstance(run, Base):
            return [run]
        entry = trained_model(self.config, run.name)
        return [*self._stages(Base(entry["init"])), run] if entry and entry.get("init") else [run] if entry else []

    def _pretrained(self, found: Iterable[str]) -> list[dict]:
        entries = (trained_model(self.config, address.removeprefix("models/")) for address in found)
        return [entry for entry in entries if entry]

    def _training(self, run: Run) -> Row:
        match run:
            case Base():
                return self._pretraining(run)
            case Adapted(adaptation=Adjustment()):
                settings = {"settings": adjustment_settings(self.config, run), "seed": run.seed}
                return settings | self._bitext(run.base, run.adaptation)
            case Adapted():
                sets = self.catalog.sets_of(run)
                texts = {name: self.texts(data for data in sets if data.split == split) for name, split in _SPLITS}
                original = self.model(Base(run.base))
                return {"original": original, "seed": run.seed, "settings": mlm_settings(self.config, run)} | texts
        row: Row = {name: getattr(run, name) for name in ("preset", "source", "init", "seed")}
        row |= {name: self.set(data) for name, data in training_sets(self.config, run).items()}
        row |= {"code": [file_of(run.task)], "sets": self.texts(evaluation_sets(self.config, run))}
        if (start := model_of(run)) is None:
            return row | {"settings": bilstm_settings(self.config, run)}
        row |= {"model": self.model(start), "settings": finetune_settings(self.config, run)}
        if is_continual(run.init):
            row |= self._bitext(start.base, start.adaptation)
        trials = [self.at(trial.path(), "training.json") for trial in trials_of(self.config, run)]
        return row | {"trials": trials}

    def _pretraining(self, run: Base) -> Row:
        entry = trained_model(self.config, run.name)
        if not entry:
            raise UserError(f"pretrain.models: no model '{run.name}' is pretrained here")
        earlier = entry.get("init")
        start = {"original": self.model(Base(earlier))} if earlier else {"vocabulary": self.vocabulary_of(run.name)}
        texts = {name: self.texts(texts_of(entry, split)) for name, split in _SPLITS}
        row = {"settings": pretrain_settings(self.config, run.name), "long": is_long(self.config, run.name)}
        return {**start, **row, **texts}

    def _bitext(self, base: str, made: Adjustment) -> Row:
        """The sentence pairs and links of an adjustment, and the model as it was before."""
        pool = pool_set(self.config, made.lang)
        links = self.at(f"{link_address(pool, pieces=made.aggregation == 'subword')}.pharaoh")
        return {"original": self.model(Base(base)), "bitext": self.set(pool), "links": links}

    def _vectors(self) -> dict[str, Row]:
        found = {}
        for (run, corpus), items in self._compared.items():
            text = self.texts(DataSet("parallel", corpus, lang) for lang in self.catalog.languages(run, corpus))
            # `align-predict`: without special tokens, at most 200 sub-words; `anc`: with them, at most 100.
            settings: dict[str, object] = {"special_tokens": "exclude", "max_length": 200}
            if corpus != "pud":
                settings = {"special_tokens": "include", "max_length": 100}
                settings |= {"last_layer": "cls"} if isinstance(run, Tuned) else {}
            row = {"text": text, "settings": settings | self._backend(run)}
            found[f"embeddings/{run.path()}/{corpus}"] = {
                "sheet": "vectors",
                "items": items,
                **self._looked_into(run),
                **row,
            }
        paper = self.config["adjust"]
        # Word pairs are of sentences that no adjusted model of the main setting has seen.
        settings = {
            "pairs": paper["word_pairs"],
            "skip_sample": pair_count(paper["pairs"]),
            "skip_seeds": adjust_seeds(self.config)[0],
        }
        for (run, lang), items in self._measured.items():
            pool = pool_set(self.config, lang)
            row = {"pool": self.set(pool), "links": self.at(f"{link_address(pool)}.pharaoh")}
            row |= {"settings": settings | self._backend(run), **self._looked_into(run)}
            found[f"embeddings/{run.path()}/words/{lang}"] = {"sheet": "vectors", "items": items, **row}
        return found

    def _looked_into(self, run: Run) -> Row:
        """A model whose vectors are taken; a fine-tuned one lies over the one that it started from."""
        if not isinstance(run, Tuned):
            return {"model": self.model(run)}
        files = tuned_files(self.at(run.path()))
        return {"model": self.model(model_of(run)), "tuned": [files["weights"], files["config"]]}

    def _backend(self, run: Run) -> dict[str, str]:
        """What computes a model, where that is not left to the programs; a fine-tuned model remembers it."""
        chosen = "auto" if isinstance(run, Tuned) else backend_of(self.config, run.name)
        if chosen == "bidirectional" and isinstance(run, Base):
            chosen = self.config["backend"]  # it was pretrained as a decoder
        return {} if chosen == "auto" else {"backend": chosen}

    def _comparisons(self) -> dict[str, Row]:
        found = {}
        for (run, corpus), items in self._compared.items():
            vectors, settings = self.at("embeddings", run.path(), corpus), self._indexes(run, corpus)
            row = {"sheet": "comparisons", "items": items, "vectors": vectors, "settings": settings}
            found[f"similarity/{run.path()}/{corpus}"] = row
        for (run, lang), items in self._measured.items():
            files = word_files(self.at("embeddings", run.path(), "words", lang))
            found[f"distances/{run.path()}/{lang}"] = {"sheet": "comparisons", "items": items, **files}
        return found

    def _indexes(self, run: Run, corpus: str) -> Row:
        """Languages and indexes that some item wants of a model, and the settings of these indexes alone.

        Another number of directions must not compare models again whose SVCCA nobody asks for.
        """
        similarity, indexes = self.config["similarity"], self.catalog.indexes(run, corpus)
        languages = [lang for lang in self.catalog.languages(run, corpus) if lang != "en"]
        settings: Row = {"reference": "en", "languages": languages, "indexes": indexes}
        if "svcca" in indexes:
            settings["svcca_directions"] = similarity["svcca_directions"]
        if set(CONTROLLED).intersection(indexes):
            settings["control"] = similarity["control"]
        return settings

    # Which items ask for what

    def _asked(self, needed: Callable[[list[str]], Iterable]) -> dict:
        """What the items need, sorted, each with the items that ask for it."""
        found: dict = {}
        for item in self.catalog.items:
            for each in needed([item]):
                found.setdefault(each, []).append(item)
        return {each: found[each] for each in sorted(found, key=lambda each: each.path())}

    @cached_property
    def _compared(self) -> dict[tuple[Run, str], list[str]]:
        """Models and parallel corpora of which similarities are wanted, with the items that want them."""
        return self._wanted(self._corpora)

    @cached_property
    def _measured(self) -> dict[tuple[Run, str], list[str]]:
        """Models and languages of which distances of linked words are wanted, with the items that want them."""
        return self._wanted(self._languages)

    def _wanted(self, of: Callable[[str], list[tuple[Run, str]]]) -> dict[tuple[Run, str], list[str]]:
        found: dict[tuple[Run, str], list[str]] = {}
        for item in self.catalog.items:
            for key in of(item):
                found.setdefault(key, []).append(item)
        return {key: found[key] for key in sorted(found, key=lambda key: (key[0].path(), key[1]))}

    def _corpora(self, item: str) -> list[tuple[Run, str]]:
        needs, kinds = self.catalog.needs(item), self.catalog.known[item].compares
        corpora = sorted({data.name for data in needs.sets if data.kind == "parallel"})
        return [(run, corpus) for run in needs.runs if isinstance(run, kinds) for corpus in corpora]

    def _languages(self, item: str) -> list[tuple[Run, str]]:
        needs = self.catalog.needs(item)
        languages = sorted({data.languages[0] for data in needs.sets if data.kind == "bitext"})
        return [(run, lang) for run in needs.runs for lang in languages if covers_language(run, lang)]

    # Tables, figures, verdicts, page

    def _items(self) -> dict[str, Row]:
        rows = ((item, self._item(item)) for item in self.catalog.items)
        return {f"{item_kind(item)}s/{item}": {"sheet": "items", "items": [item], **row} for item, row in rows}

    def _item(self, item: str) -> Row:
        table = item_kind(item) == "table"
        return {
            "title": self.catalog.known[item].title,
            "results": self.item_results(item),
            "printed": self.printed(item),
            "config": self.config_file,
            "templates": [tracked(f"resources/report/{name}") for name in TEMPLATES if table],
            "settings": self._item_settings(item),
            "code": self._module(item.split("/")[0], f"{item_kind(item)}s"),
        }

    def item_results(self, item: str) -> list[str]:
        """The files that a table or figure is made from: of its runs and of its sets."""
        needs, reads = self.catalog.needs(item), self.catalog.known[item].reads
        runs = sorted(needs.runs, key=lambda run: run.path())
        tuned = [run for run in runs if isinstance(run, Tuned)]
        files = [self.at(run.path(), RUN_FILES[name]) for name in reads if name in RUN_FILES for run in tuned]
        if "model" in reads:
            files += [file for run in runs for file in self.model(run)]
        for data in sorted(needs.sets):
            if data.kind == "text":
                files += [self.set(data)] * ("text" in reads) + [self.set_report(data)] * ("report" in reads)
        files += [self.at("similarity", run.path(), f"{corpus}.csv") for run, corpus in self._corpora(item)]
        for run, lang in self._languages(item):
            files += [self.at("distances", run.path(), f"{lang}.{form}") for form in ("csv", "json")]
        return sorted(files)

    def printed(self, item: str) -> list[str]:
        """What the paper printed, and the spread it states, by which its numbers are judged; a new item has none."""
        paper = item.split("/")[0]
        stated = ["align-predict/claims.csv"] if paper in ("align-predict", "talk") else []
        names = [f"{item}.csv", *stated] if item_kind(item) == "table" else [f"{paper}/figure_readings.csv"]
        return [tracked(f"resources/papers/{name}") for name in names if (PAPERS / name).is_file()]

    def _module(self, paper: str, part: str) -> list[str]:
        """A module of a paper, which the program that needs it does not import by name."""
        file = f"crossalign/papers/{paper.replace('-', '_')}/{part}.py"
        return [file] if (SCRIPTS / file).is_file() else []

    def _item_settings(self, item: str) -> list:
        """The keys that decide how a table or figure looks and which of its numbers are judged.

        The talk shows items of `align-predict` again.
        """
        paper, config = item.split("/")[0], self.config
        shown = {"align-predict", "talk"} if paper == "talk" else {paper}
        common = [config["seeds"], config["similarity"]["index"], sorted(stand_ins(config))]
        drawn = [config["similarity"].get("draw_control", False)] if item_kind(item) == "figure" else []
        return common + drawn + [config[name] for name in sorted(shown)]

    def covers(self, items: Iterable[str]) -> bool:
        """Whether the texts of the unseen languages are prepared and the model is there for items anyway."""
        return COVERED in items and Base(bases(self.config, "talk")[0]) in self.catalog.runs(items)

    def _coverage(self) -> Row:
        """How well the vocabulary of the model of `talk` covers the raw text of its languages."""
        texts = self.texts(text_set(self.config, lang) for lang in self.config["talk"]["languages"])
        model = self.vocabulary_of(bases(self.config, "talk")[0])
        return {"texts": texts, "model": model}

    def _gathered(self) -> Row:
        """All scores, similarities and distances as tidy files."""
        folders = (self.at("similarity/"), self.at("distances/"))
        files = [file for file in self.all_results if file.startswith(folders) or file.endswith("/scores.json")]
        return {"results": files, "config": self.config_file}

    def _verdicts(self) -> Row:
        """Verdicts on printed numbers."""
        return {
            "made": [item_files(self.results, item)["csv"] for item in self.catalog.items],
            "config": self.config_file,
        }

    def _findings(self) -> Row:
        """Verdicts on the papers' findings, and the printed numbers that stand beside them."""
        tables = sorted(file.relative_to(ROOT).as_posix() for file in PAPERS.glob("*/*.csv"))
        return {
            "frames": [self.at(f"{name}.parquet") for name in ("scores", "similarity", "distances")],
            "printed": [tracked(name) for name in tables],
            "config": self.config_file,
            "code": [module for paper in papers() for module in self._module(paper, "findings")],
            # What findings read of the config beside the models, all of which the frames hold.
            "settings": {name: self.config.get(name) for name in ("papers", "reasons", "skip", *papers())},
        }

    def _report(self) -> Row:
        """The page, with the provenance of every item."""
        made = (run for run in self.catalog.runs() if not isinstance(run, Base) or self.catalog.made_here(run.name))
        assets = sorted(file.name for file in (ROOT / "resources" / "report").iterdir() if file.is_file())
        return {
            "verdicts": [self.at(name) for name in ("verdicts.csv", "findings.json")],
            "made": [file for item in self.catalog.items for file in item_files(self.results, item).values()],
            "results": self.all_results,
            "training": sorted(self.at(run.path(), "training.json") for run in made),
            "assets": [tracked(f"resources/report/{name}") for name in assets],
            "differences": tracked("docs/understand/differences.md"),
            "config": self.config_file,
            "coverage": [self.at("coverage.csv")] if self.covers(self.catalog.items) else [],
            # What the page alone shows of the config.
            "settings": {name: self.config.get(name) or {} for name in ("skip", "replaced")},
        }

    @cached_property
    def all_results(self) -> list[str]:
        """Every result that some item is made from, without models, which are large and no result."""
        files = {file for item in self.catalog.items for file in self.item_results(item)}
        models = (f"{self.results}/models/", f"{self.downloads}/")
        return sorted(file for file in files if file.startswith(f"{self.results}/") and not file.startswith(models))

    # Where things lie

    def at(self, *parts: str) -> str:
        return "/".join((self.results, *parts))

    def set(self, data: DataSet) -> str:
        """A prepared set."""
        return self.at(data.path())

    def texts(self, sets: Iterable[DataSet]) -> list[str]:
        return list(map(self.set, sets))

    def set_report(self, data: DataSet) -> str:
        """The account of a prepared set."""
        return self.at(f"data/{data.kind}/{data.name}/{data.split}.report.json")

    def model(self, start: Run) -> list[str]:
        """The files of a model to start from, in the folder of the first: made here, from the hub, or from a folder."""
        if isinstance(start, Adapted) or self.catalog.made_here(start.name):
            files = model_files(self.at(start.path()))
            return [files["weights"], files["config"], files["tokenizer"]]
        if place_of(self.config, start.name) == HUB:
            return [self.complete(start.name)]
        return self._folder_model(start.name)

    def complete(self, name: str) -> str:
        """A downloaded model is complete when this file is there."""
        return f"{self.downloads}/models/{name}/complete.json"

    def _folder_model(self, name: str) -> list[str]:
        if name not in self._model_files:
            folder = model_folder(self.config, name)
            # Its own accounts say nothing that a job reads.
            names = {file.name for file in folder.glob("*") if file.is_file()} - {"provenance.json", "training.json"}
            names = names or {"config.json", "tokenizer.json"}  # of a model that is going to be made again
            files = ["model.safetensors", *sorted(names - {"model.safetensors"})]
            self._model_files[name] = [tracked(folder / file) for file in files]
        return self._model_files[name]

    def vocabulary_of(self, model: str) -> list[str]:
        """Files beside which the vocabulary of a base model lies: one that is learnt here is there before the model."""
        name = (trained_model(self.config, model) or {}).get("vocabulary", model)
        if trained_vocabulary(self.config, name):
            return [self.at("vocabularies", name, "tokenizer.json")]
        return self.model(Base(name))

    # Targets

    def items_of(self, target: str) -> list[str]:
        """The chosen tables and figures behind a target: a rule's name, an item's, or a file that a row makes."""
        items = list(self.catalog.items)
        if target in ("all", "data", "download"):
            return items
        if target in PAPER_TARGETS:
            return [item for item in items if item.startswith(f"{PAPER_TARGETS[target]}/")]
        if target in items:
            return [target]
        if row := self.row_of(target):
            return row.get("items", items)
        raise UserError(
            f"unknown target '{target}': the plan knows {', '.join(TARGETS)}, and tables and figures that the config "
            f"chooses, such as align-predict/table1, and files of what stands in the sheets of {self.at('plan')}"
        )

    def target(self, target: str) -> list[str]:
        """The files of a target."""
        items = self.items_of(target)
        if target == "download":
            return self.fetched(items)
        if target == "data":
            return self.data(items)
        if target not in (*TARGETS, *items):
            return [target]
        page = [self.at("report/index.html"), self.at("scores.csv")] if target == "all" else []
        page += [self.at("coverage.csv")] if target in ("all", "talk") and self.covers(items) else []
        return [file for item in items for file in item_files(self.results, item).values()] + page

    def fetched(self, items: Iterable[str] | None = None) -> list[str]:
        """Every file and model that items need from outside."""
        files = [f"{self.downloads}/{path}" for path in self.catalog.files(items)]
        files += [f"{self.downloads}/{split.complete}" for split in self.catalog.hub_splits(items)]
        return files + [self.complete(name) for name in self.hub_models(items)]

    def hub_models(self, items: Iterable[str] | None = None) -> list[str]:
        """The models to fetch: none of those that lie in a folder."""
        return [name for name in self.catalog.models(items) if place_of(self.config, name) == HUB]

    def data(self, items: Iterable[str]) -> list[str]:
        """The prepared sets, word links, vocabularies and downloaded models behind items."""
        asked, files = set(items), []
        for address, row in self.rows.items():
            if row.get("sheet") == "sets" and asked.intersection(row["items"]):
                files += [self.at(f"{address}.pharaoh")] if "pool" in row else row["made"]
        vocabularies = [self.at("vocabularies", name, "tokenizer.json") for name in self.catalog.vocabularies(items)]
        return [*files, *vocabularies, *map(self.complete, self.hub_models(items))]

    # As files

    def write(self, folder: Path) -> None:
        """Write the sheets, each only if it says something else than before: every job of a cluster plans anew."""
        for sheet, columns in SHEETS.items():
            lines = ["\t".join(("address", *columns))]
            for address, row in self.rows.items():
                if row.get("sheet") == sheet:
                    lines.append("\t".join((address, *(self._cell(column, row.get(column)) for column in columns))))
            text, file = "\n".join(lines) + "\n", folder / f"{sheet}.tsv"
            if not file.is_file() or file.read_text(encoding="utf-8") != text:
                with write_atomic(file) as stream:
                    stream.write(text)

    def _cell(self, column: str, value: object) -> str:
        """A value as it stands in a sheet: a model by its folder, results by their place in the folder of the run."""
        if isinstance(value, list):
            files = [str(Path(file).parent) for file in value[:1]] if column in FOLDERS else value
            return " ".join(file.removeprefix(f"{self.results}/") for file in files)
        if isinstance(value, dict):
            return as_json(value)
        return "" if value is None else str(value).removeprefix(f"{self.results}/")


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_SPLITS = (("texts", "train"), ("dev", "dev"))
