"""The demo's own models (resources/demo/models.yaml): tracked, and made again by a rule where one is deleted."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
PLAN = ROOT / "resources" / "demo" / "models.yaml"


def read_plan(path: Path = PLAN) -> dict[str, Any]:
    """Texts, vocabularies, shapes and trainings of all models."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def deleted_models(config: dict) -> dict[str, str | None]:
    """The models whose weights are not there, each with the one that it goes on from. Only the demo makes them."""
    if not config.get("world"):
        return {}
    models = read_plan()["models"]
    there = {name for name in models if (ROOT / config["models"] / name / "model.safetensors").exists()}
    return {name: model.get("init") for name, model in models.items() if name not in there}
