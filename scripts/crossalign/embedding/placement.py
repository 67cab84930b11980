"""Where the parts of a model lie: on one device, over several, or partly in the memory of the host.

Planned from the configuration, before a byte is loaded: a model that does not fit says so at once, with numbers.
`demand` says the same before the model is even downloaded, and without PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crossalign.engine.shape import XGLM, XLMR_XL, EncoderConfig
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    import torch

# Memory that fragments and that libraries take for themselves.
_SLACK = 0.95
# Host memory left to the rest of the program.
_HOST_RESERVE = 2 << 30
# Tokens of a batch on a GPU unless the command line says otherwise.
_BUDGET = 32768
# Families whose tables of words are in bf16 too: in fp32 they would be gigabytes. Before its family is known, a model
# of so many parameters is taken to be one of them, and every decoder.
LARGE_TABLES = (XLMR_XL, XGLM)
_LARGE = 2_000_000_000


@dataclass(frozen=True)
class Sizes:
    """Bytes of a model's parts in one precision."""

    embeddings: int
    layers: tuple[int, ...]
    rest: int

    @property
    def total(self) -> int:
        """All weights."""
        return self.embeddings + sum(self.layers) + self.rest


@dataclass(frozen=True)
class Placement:
    """The device of the embeddings and of each layer; weights of `spilled` layers stay in the host's memory."""

    main: torch.device
    layers: tuple[torch.device, ...]
    spilled: frozenset[int] = frozenset()

    def weights_at(self, name: str) -> torch.device:
        """Where the parameter `name` lies."""
        if name.startswith("layers."):
            index = int(name.split(".")[1])
            if index in self.spilled:
                import torch

                return torch.device("cpu")
            return self.layers[index]
        return self.main if name.startswith("embeddings.") else self.last

    @property
    def last(self) -> torch.device:
        """Where the last layer computes."""
        return self.layers[-1] if self.layers else self.main


def parameter_type(name: str, config: EncoderConfig, precision: str) -> torch.dtype:
    """The layers follow the precision; tables stay in fp32 except in the large families."""
    import torch

    low = precision == "bf16" and (config.family in LARGE_TABLES or not name.startswith("embeddings."))
    return torch.bfloat16 if low else torch.float32


def weight_sizes(config: EncoderConfig, precision: str) -> Sizes:
    """Bytes of the weights, from the configuration alone."""
    from crossalign.engine.encoder import empty_encoder

    embeddings, rest, layers = 0, 0, [0] * config.layers
    for name, parameter in empty_encoder(config).named_parameters():
        size = parameter.numel() * parameter_type(name, config, precision).itemsize
        if name.startswith("layers."):
            layers[int(name.split(".")[1])] += size
        elif name.startswith("embeddings."):
            embeddings += size
        else:
            rest += size
    return Sizes(embeddings, tuple(layers), rest)


def working_bytes(config: EncoderConfig, precision: str, budget: int) -> int:
    """Bytes of a batch of `budget` tokens while it passes a layer: states, products, the inner states, the means."""
    return _working(config.hidden, config.intermediate, 2 if precision == "bf16" else 4, budget)


def _working(hidden: int, intermediate: int, size: int, budget: int) -> int:
    return budget * (hidden * (8 * size + 8) + 2 * intermediate * size)


@dataclass(frozen=True)
class Demand:
    """What embedding with a model takes in bf16: bytes of its weights, of a batch, and of one layer."""

    weights: int
    batch: int
    layer: int

    @property
    def memory(self) -> int:
        """Bytes of the smallest single GPU that holds everything."""
        return int((self.weights + self.batch) / _SLACK)

    def devices(self, memory: int) -> int:
        """How many GPUs with so many bytes hold the model; 0: none can, whatever their number."""
        room = int(memory * _SLACK) - self.batch
        layers = room // self.layer if self.layer else 0
        # Layers are not cut, so what a device has beyond its last whole layer does not count.
        return -(-self.weights // (layers * self.layer)) if layers > 0 else 0


def demand(model, budget: int = _BUDGET) -> Demand | None:
    """The demand of a model of the register (an entry of models.tsv); None where the register does not know its size.

    Rather too much than too little: the width of the inner layer is not in the register, and is taken to be what the
    parameters would allow if there were no tables.
    """
    if not (model.parameters and model.layers and model.neurons):
        return None
    inside = 12 * model.layers * model.neurons**2
    exact = model.objective != "clm" and model.parameters < _LARGE
    weights = 2 * model.parameters + (2 * max(0, model.parameters - inside) if exact else 0)
    inner = max(0, model.parameters // model.layers - 4 * model.neurons**2) // (2 * model.neurons)
    return Demand(weights, _working(model.neurons, inner, 2, budget), -(-weights // model.layers))


def plan(name: str, sizes: Sizes, working: int, devices: Sequence[tuple[torch.device, int]], host: int) -> Placement:
    """Fill the devices (with their free bytes) one after another; what is left goes to the host, if it has room."""
    rooms = [int(free * _SLACK) - working for _, free in devices]
    layers, left = _fill(sizes, rooms)
    spilled: frozenset[int] = frozenset()
    if left:
        # The weights of one spilled layer at a time are copied to the last device.
        rooms[-1] -= max(sizes.layers)
        layers, left = _fill(sizes, rooms)
        spilled = frozenset(left)
    needed_host = sum(sizes.layers[index] for index in left)
    on_host_only = all(device.type == "cpu" for device, _ in devices)
    if rooms[0] < sizes.embeddings or rooms[-1] < 0 or (left and (on_host_only or needed_host > host - _HOST_RESERVE)):
        raise UserError(_too_large(name, sizes, working, devices, host))
    places = [devices[index][0] for index in layers] + [devices[-1][0]] * len(left)
    return Placement(devices[0][0], tuple(places), spilled)


def _fill(sizes: Sizes, rooms: Sequence[int]) -> tuple[list[int], list[int]]:
    """The device number of each layer that finds room, in order, and the layers that do not."""
    rooms = list(rooms)
    rooms[0] -= sizes.embeddings
    rooms[-1] -= sizes.rest
    device, places = 0, []
    for size in sizes.layers:
        while device < len(rooms) and rooms[device] < size:
            device += 1
        if device == len(rooms):
            break
        rooms[device] -= size
        places.append(device)
    return places, list(range(len(places), len(sizes.layers)))


def _too_large(name: str, sizes: Sizes, working: int, devices: Sequence[tuple[torch.device, int]], host: int) -> str:
    free = [f"{device} {gigabytes(room)}" for device, room in devices if device.type != "cpu"]
    free.append(f"host memory {gigabytes(host)}")
    return (
        f"{name} does not fit: its weights need {gigabytes(sizes.total)} and a batch {gigabytes(working)}; "
        f"available: {', '.join(free)}. Ways out: --precision bf16 (on a GPU; half the memory), a smaller "
        "--token-budget, more GPUs (--device cuda uses all that are visible), or more host memory, which takes the "
        "layers that GPUs cannot hold"
    )


def gigabytes(count: int) -> str:
    """A number of bytes for people and for scripts."""
    return f"{count / 1e9:.1f} GB ({count} bytes)"


def free_devices(device: torch.device) -> list[tuple[torch.device, int]]:
    """The device, or with plain `cuda` all visible GPUs, each with its free memory."""
    import torch

    if device.type == "cpu":
        return [(device, host_memory())]
    numbers = range(torch.cuda.device_count()) if device.index is None else [device.index]
    return [(torch.device("cuda", number), torch.cuda.mem_get_info(number)[0]) for number in numbers]


def host_memory() -> int:
    """Bytes that programs may still take."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    # No such file on this system: let the allocation itself decide.
    return 1 << 62
