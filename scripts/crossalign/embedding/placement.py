"""Where the parts of a model lie: on one device, over several, or partly in the memory of the host.

Planned from the configuration, before a byte is loaded: a model that does not fit says so at once, with numbers.
`demand` says the same before the model is even downloaded, and without PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossalign.engine.shape import XGLM, XLMR_XL
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    import torch

    from crossalign.engine.encoder import BaseEncoder

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
        return self.last if name.startswith("final_norm.") else self.main

    @property
    def last(self) -> torch.device:
        """Where the last layer computes."""
        return self.layers[-1] if self.layers else self.main


def parameter_type(name: str, encoder: BaseEncoder, precision: str) -> torch.dtype:
    """What is low in training follows the precision; in the large families the tables do too."""
    import torch

    low = precision == "bf16" and (encoder.config.family in LARGE_TABLES or encoder.is_low(name))
    return torch.bfloat16 if low else torch.float32


def weight_sizes(encoder: BaseEncoder, precision: str) -> Sizes:
    """Bytes of the weights of an encoder, which may be an empty one."""
    embeddings, rest, layers = 0, 0, [0] * len(encoder.layers)
    for name, parameter in encoder.named_parameters():
        size = parameter.numel() * parameter_type(name, encoder, precision).itemsize
        if name.startswith("layers."):
            layers[int(name.split(".")[1])] += size
        elif name.startswith("final_norm."):
            rest += size
        else:
            embeddings += size
    return Sizes(embeddings, tuple(layers), rest)


def working_bytes(encoder: BaseEncoder, precision: str, budget: int) -> int:
    """Bytes of a batch of `budget` tokens while it passes a layer: states, products, the inner states, the means."""
    hidden, size = encoder.config.hidden, 2 if precision == "bf16" else 4
    if encoder.backend == "own":
        return _working(hidden, encoder.config.intermediate, size, budget)
    widest = max(max(parameter.shape) for parameter in encoder.layers.parameters())
    # The library computes masks, gates and copies of keys and values besides.
    return 2 * _working(hidden, widest, size, budget)


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


def spread(encoder: BaseEncoder, placement: Placement) -> None:
    """Let the layers of the library compute where they were planned.

    Their inputs follow them, their outputs come back to the main device, and the weights of a layer that lies in host
    memory come for as long as it runs.
    """
    # Each module once: ALBERT runs the same one again and again.
    first = {layer: index for index, layer in reversed([*enumerate(encoder.layers)])}
    for layer, index in first.items():
        device = placement.layers[index]
        if index in placement.spilled or device != placement.main:
            visit = _Visit(device, placement.main, index in placement.spilled)
            layer.register_forward_pre_hook(visit.enter, with_kwargs=True)
            layer.register_forward_hook(visit.leave)


class _Visit:
    """One layer's run on another device."""

    def __init__(self, device: torch.device, main: torch.device, fetched: bool) -> None:
        self._device, self._main, self._fetched = device, main, fetched
        self._at_home: list[tuple[torch.Tensor, torch.Tensor]] = []

    def enter(self, layer: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        if self._fetched:
            for tensor in (*layer.parameters(), *layer.buffers()):
                self._at_home.append((tensor, tensor.data))
                # Freed when the layer has run; the next one's weights then take its place.
                tensor.data = tensor.data.to(self._device, non_blocking=True, copy=True)
        return _moved((args, kwargs), self._device)

    def leave(self, layer: torch.nn.Module, args: tuple, output: Any) -> Any:
        while self._at_home:
            tensor, data = self._at_home.pop()
            tensor.data = data
        return _moved(output, self._main)


def _moved(value: Any, device: torch.device) -> Any:
    """Tensors on a device, alone or in what layers are given and give."""
    if hasattr(value, "to"):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _moved(part, device) for key, part in value.items()}
    return type(value)(_moved(part, device) for part in value) if isinstance(value, list | tuple) else value


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
