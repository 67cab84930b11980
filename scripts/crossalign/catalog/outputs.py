"""What rules write, below a folder that may hold wildcards."""

import os
from pathlib import Path

from crossalign.catalog.addresses import CONTINUAL, INIT, MODEL, PRESET, SET
from crossalign.catalog.sets import DataSet

ROOT = Path(__file__).resolve().parents[3]


def kept_or_not(config: dict) -> tuple[str, str]:
    """The addresses of fine-tuned models that stay on disk (`keep_models`), and of the others, as patterns."""
    kept = {"all": INIT, "ref": f"ref|{CONTINUAL}", "none": "(?!)"}[config["keep_models"]]
    tuned = rf"tuned/(?!bilstm/){MODEL}/{PRESET}-{SET}"
    return rf"{tuned}/(?:{kept})/seed\d+", rf"{tuned}/(?!(?:{kept})/)(?:{INIT})/seed\d+"


def model_files(folder: str) -> dict[str, str]:
    """A pretrained or adapted model."""
    names = {"weights": "model.safetensors", "config": "config.json", "tokenizer": "tokenizer.json"}
    return {name: f"{folder}/{file}" for name, file in (names | {"training": "training.json"}).items()}


def tuned_files(folder: str) -> dict[str, str]:
    """A fine-tuned model."""
    names = {"weights": "model/model.safetensors", "config": "model/config.json", "training": "training.json"}
    return {name: f"{folder}/{file}" for name, file in names.items()}


def score_files(folder: str) -> dict[str, str]:
    """The test of a fine-tuned model."""
    return {"scores": f"{folder}/scores.json", "predictions": f"{folder}/predictions.jsonl.gz"}


def word_files(stem: str) -> dict[str, str]:
    """Vectors of linked and of other words."""
    return {kind: f"{stem}-{kind}.npy" for kind in ("related", "unrelated")}


def item_files(folder: str, item: str) -> dict[str, str]:
    """A table or figure, in every format."""
    kind = item_kind(item)
    formats = ("csv", "tex", "html", "json") if kind == "table" else ("svg", "pdf", "png", "csv")
    return {form: f"{folder}/{kind}s/{item}.{form}" for form in formats}


def item_kind(item: str) -> str:
    return "table" if item.rpartition("/")[2].startswith("table") else "figure"


def set_address(data: DataSet) -> str:
    """A prepared set; the two splits of a text are made together."""
    return f"data/{data.kind}/{data.name}" + ("" if data.kind == "text" else f"/{data.split}")


def link_address(data: DataSet, pieces: bool = False) -> str:
    """The word links of a bitext, or the links of its word pieces."""
    return f"links/{data.name}/{data.split}{'.pieces' if pieces else ''}"


def tracked(path: str | Path) -> str:
    """A file of the repository. An absolute path would make a moved project start anew."""
    return os.path.relpath(ROOT / path)
