"""Tables of `anc`."""

import re
from collections.abc import Callable
from math import prod
from pathlib import Path

from safetensors import SafetensorError, safe_open

from crossalign.catalog.addresses import Base
from crossalign.catalog.sets import DataSet
from crossalign.catalog.studied import model_folder, read_shape
from crossalign.fetch.register import Model, read_models
from crossalign.papers.anc.items import PAPER, PRINTED_MODELS, xnli_tuned
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell, Column, Row, Table
from crossalign.results.names import language, model
from crossalign.results.published import ROOT
from crossalign.results.values import Value
from crossalign.results.verdict import SHARE

# How the printed table calls what a model's config.json tells.
COUNTED = {"layers": "layers", "neurons": "neurons_per_layer"}
# The encoder is counted: no head of any task, and no buffers.
HEADS = ("cls.", "lm_head.", "classifier.", "qa_outputs.", "pooler.")


def table1(context: Context) -> Table:
    """Zero-shot XNLI accuracy, as a share like the paper's."""
    paper = context.config[PAPER]
    rows = []
    for name in paper["schemes"]:
        runs = xnli_tuned(context.config, [name])
        cells = []
        for lang in paper["xnli_languages"]:
            data = DataSet("nli", f"xnli_{lang}", "dev")
            value = context.results.value(runs, [data], "accuracy").scaled(0.01)
            keys = {"task": "nli", "dataset": "xnli", "split": "validation", "model": PRINTED_MODELS.get(name, name)}
            keys |= {"source": "en", "target": lang, "metric": "accuracy", "kind": "score"}
            match = context.printed.find(keys)
            verdict = context.judge(scale=SHARE, runs=runs).number(match, value)
            cells.append(Cell(keys, value, digits=3, printed=match, verdict=verdict))
        rows.append(Row(model(name), cells))
    heads = [Column(language(lang)) for lang in paper["xnli_languages"]]
    notes = ["Accuracy on the XNLI validation sets after fine-tuning on English."]
    return Table(stub="normalisation", columns=heads, rows=rows, notes=notes)


FIELDS = {
    "objective": "objective",
    "parameters": "parameters",
    "layers": "layers",
    "neurons_per_layer": "neurons per layer",
    "languages": "languages",
}


def table2(context: Context) -> Table:
    """The models compared: from the register, and from the models' own files where they are here."""
    paper = context.config[PAPER]
    register = read_models(ROOT / "resources" / "models.tsv")
    rows = []
    for name in [*paper["xlmr"], *paper["xglm"]]:
        facts = facts_of(context.config, name, register.get(name))
        judge = context.judge(runs=[Base(name)])
        cells = []
        for field in FIELDS:
            keys = {"model": PRINTED_MODELS.get(name, name), "field": field}
            match = context.printed.find(keys)
            fact = facts.get(field)
            if isinstance(fact, int):
                value, text = Value(float(fact)), f"{fact:,}"
                verdict = judge.count(match, fact)
            else:
                value, text = Value(), fact or ""
                verdict = judge.words(match, text)
            cells.append(Cell(keys, value, text, 0, printed=match, verdict=verdict, fact=True))
        rows.append(Row(model(name), cells))
    notes = ["Layers, neurons and parameters are counted in the models' files where these are here; else registered."]
    heads = [Column(label) for label in FIELDS.values()]
    return Table(stub="model", columns=heads, rows=rows, notes=notes)


def facts_of(config: dict, name: str, registered: Model | None) -> dict[str, int | str | None]:
    """What is known of a model; what can be counted in its files goes before what the register says."""
    facts: dict[str, int | str | None] = {}
    if registered:
        facts |= {"objective": registered.objective.upper(), "parameters": registered.parameters}
        facts |= {"layers": registered.layers, "neurons_per_layer": registered.neurons}
        languages = registered.languages
        facts["languages"] = int(languages) if languages.isdigit() else languages
    folder = model_folder(config, name)
    if (folder / "config.json").is_file():
        shape = read_shape(folder)
        facts |= {field: shape[kind] for kind, field in COUNTED.items() if kind in shape}
        if counted := sum(map(parameters, sorted(folder.glob("*.safetensors")))):
            facts["parameters"] = counted
    return facts


def parameters(path: Path) -> int:
    """The numbers of the encoder in a safetensors file, from its head alone; 0 when it cannot be read."""
    try:
        with safe_open(path, "np") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError):
        return 0
    inner = {re.sub(r"^(bert\.)?(roberta\.)?(model\.)?", "", name): shape for name, shape in shapes.items()}
    return sum(
        prod(shape) for name, shape in inner.items() if not name.startswith(HEADS) and "position_ids" not in name
    )


TABLES: dict[str, Callable[[Context], Table]] = {"table1": table1, "table2": table2}
