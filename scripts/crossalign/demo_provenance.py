"""How a demo model was made: provenance.json beside its weights, and whether a folder is what the plan asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crossalign.demo_models import vocabulary_of
from crossalign.runtime.files import sha256, write_json


def stage(report: dict[str, Any]) -> dict[str, Any]:
    """One stage of training: what was set, and how it went."""
    curve = report["loss"]
    return {
        "settings": report["settings"],
        "loss": {"first": curve[0], "last": curve[-1], "frequencies_alone": report["unigram_entropy"]},
        "tokens_seen": report["tokens_seen"],
        "seconds": report["seconds"],
        "device": report["device"],
        "versions": report["versions"],
    }


def asked(plan: dict[str, Any], name: str) -> dict[str, Any]:
    """What decides a model: the plan's entries, those of the model that it goes on from, and the world."""
    model, vocabulary = plan["models"][name], vocabulary_of(plan, name)
    found = {
        "recipe": {"file": "resources/demo/models.yaml", "entry": model, "defaults": plan["defaults"]},
        "world": plan["world"],
        "texts": {"name": model["texts"], "files": plan["texts"][model["texts"]]},
        "tokenizer": {"name": vocabulary, "settings": plan["tokenizers"][vocabulary]},
    }
    if plan.get("trial"):
        # Fewer sentences or steps than planned: never taken for the model itself.
        found["trial"] = plan["trial"]
    if "init" in model:
        found["init"] = asked(plan, model["init"])
    return found


def describe(folder: Path, name: str, plan: dict[str, Any]) -> dict[str, Any]:
    """The contents of provenance.json."""
    reports = json.loads((folder / "training.json").read_text(encoding="utf-8"))["stages"]
    found = asked(plan, name)
    found["texts"]["tokens"] = {lang: values["tokens"] for lang, values in reports[0]["texts"].items()}
    found["tokenizer"]["sha256"] = sha256(folder / "tokenizer.json")
    return {
        "model": name,
        **found,
        "parameters": reports[0]["parameters"],
        "stages": [stage(report) for report in reports],
        "sha256": {"model.safetensors": sha256(folder / "model.safetensors")},
    }


def write_provenance(folder: Path, name: str, plan: dict[str, Any], command: str) -> None:
    """Write provenance.json into a finished model folder, as its last file."""
    content = {**describe(folder, name, plan), "command": command}
    write_json(folder / "provenance.json", content, indent=1, ensure_ascii=False)


def finished(folder: Path, name: str, plan: dict[str, Any]) -> bool:
    """Whether the folder holds this model, made as the plan says, with the weights that it was finished with."""
    try:
        found = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
        weights = sha256(folder / "model.safetensors")
    except (OSError, ValueError):
        return False
    wanted = asked(plan, name)
    same = all(found.get(key) == wanted.get(key) for key in ("recipe", "world", "trial"))
    # These also say what came of it: numbers of tokens, a checksum.
    same = same and all(
        found.get(key, {}).get(part) == value for key in ("texts", "tokenizer") for part, value in wanted[key].items()
    )
    return same and found.get("sha256", {}).get("model.safetensors") == weights
