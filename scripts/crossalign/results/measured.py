"""What a model's own files say of it, without loading it."""

import json
import struct
from pathlib import Path

from crossalign.catalog.trained_models import trained_model

# Of the names that model families give to the same thing.
LAYERS = ("num_hidden_layers", "num_layers", "n_layer")
NEURONS = ("hidden_size", "d_model", "n_embd")
# The encoder is counted: no head of any task, and no buffers.
HEADS = ("cls.", "lm_head.", "classifier.", "qa_outputs.", "pooler.")


def model_folder(config: dict, name: str) -> Path:
    """Where the files of a base model lie."""
    if trained_model(config, name):
        return Path("results") / config["run"] / "models" / name
    if config["models"] != "hub":
        return Path(config["models"]) / name
    return Path(config["downloads"]["folder"]) / "models" / name


def measured_model(config: dict, name: str) -> dict[str, int]:
    """Layers, neurons and parameters, as far as the files are here and can be read."""
    folder = model_folder(config, name)
    found: dict[str, int] = {}
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return found
    for field, names in (("layers", LAYERS), ("neurons_per_layer", NEURONS)):
        number = next((settings[key] for key in names if isinstance(settings.get(key), int)), None)
        if number is not None:
            found[field] = number
    counted = sum(map(parameters, sorted(folder.glob("*.safetensors"))))
    return found | ({"parameters": counted} if counted else {})


def parameters(path: Path) -> int:
    """The numbers in a safetensors file, from its head alone; 0 when it cannot be read."""
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            head = json.loads(stream.read(length)) if length < 100_000_000 else {}
    except (OSError, ValueError, struct.error):
        return 0
    total = 0
    for name, tensor in head.items():
        inner = name.removeprefix("bert.").removeprefix("roberta.").removeprefix("model.")
        if name != "__metadata__" and not inner.startswith(HEADS) and not inner.endswith("position_ids"):
            size = 1
            for side in tensor["shape"]:
                size *= side
            total += size
    return total
