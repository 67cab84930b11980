"""What a model's own files say of it, without loading it."""

import json
import struct
from pathlib import Path

from crossalign.catalog.studied import model_folder, read_shape

# The encoder is counted: no head of any task, and no buffers.
HEADS = ("cls.", "lm_head.", "classifier.", "qa_outputs.", "pooler.")


def measured_model(config: dict, name: str) -> dict[str, int]:
    """Layers, neurons and parameters, as far as the files are here and can be read."""
    folder = model_folder(config, name)
    if not (folder / "config.json").is_file():
        return {}
    shape = read_shape(folder)
    found = {
        field: shape[kind] for field, kind in (("layers", "layers"), ("neurons_per_layer", "neurons")) if kind in shape
    }
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
