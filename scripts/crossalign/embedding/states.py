"""Hidden states of packed batches, layer after layer, averaged over a span of each example as soon as they exist.

Only one layer's states are in memory at a time, whatever the depth of the model.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from crossalign.embedding.model import Loaded
from crossalign.engine import ops
from crossalign.engine.batches import Store, by_length
from crossalign.engine.encoder import Layer
from crossalign.engine.layout import Layout
from crossalign.engine.parts import batch_inputs
from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import restart_if_crowded


class Batch:
    """One batch on the devices that ask for it: its tokens, and the spans to average."""

    def __init__(self, store: Store, members: np.ndarray, spans: np.ndarray) -> None:
        self._store, self._shape = store, store.exact_shape(members)
        self._vector = torch.from_numpy(store.assemble(members, self._shape))
        self.members = members
        lengths = store.lengths[members]
        first = np.cumsum(lengths) - lengths
        start, stop = spans[members].T
        counts = stop - start
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        # Tokens to average, one span after another (None: all of them), tokens of each span, first tokens of examples.
        index = None if (counts == lengths).all() else torch.from_numpy(within + np.repeat(first + start, counts))
        self._spans = index, torch.from_numpy(counts), torch.from_numpy(first)
        self._on: dict[torch.device, tuple] = {}

    def on(self, device: torch.device) -> tuple[dict[str, Tensor], Layout, tuple[Tensor | None, Tensor, Tensor]]:
        """The token numbers and positions, the layout, and the spans."""
        if device not in self._on:
            views = self._store.views(_send(self._vector, device), self._shape)
            spans = tuple(None if span is None else _send(span, device) for span in self._spans)
            self._on[device] = views, batch_inputs(views, self._shape)[0], spans
        return self._on[device]

    def average(self, state: Tensor) -> Tensor:
        """The mean over each span, in fp32."""
        index, counts, _ = self.on(state.device)[2]
        kept = state if index is None else state.index_select(0, index)
        return torch.segment_reduce(kept.float(), "mean", lengths=counts, axis=0, unsafe=True)

    def first(self, state: Tensor) -> Tensor:
        """The state of each example's first token."""
        return state.index_select(0, self.on(state.device)[2][2]).float()


def _send(tensor: Tensor, device: torch.device) -> Tensor:
    # From pinned memory the copy does not wait for the work before it: the next batch is made while this one runs.
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class _Enough(Exception):
    """The last layer that is wanted has run."""


class States:
    """Runs batches through a model that may lie on several devices or partly in the host's memory."""

    def __init__(self, model: Loaded) -> None:
        self.model = model
        # One layer on each device that computes spilled layers; their weights are copied into it in turn.
        self._slots: dict[torch.device, Layer] = {}

    def layers(self, batch: Batch, stop: int | None = None) -> Iterator[Tensor]:
        """The packed states of the embeddings and of each layer, up to layer `stop`."""
        encoder, placement = self.model.encoder, self.model.placement
        last = len(encoder.layers)
        views = batch.on(placement.main)[0]
        x = encoder.embeddings(views["ids"], views["positions"], None, 0.0)
        yield x if last or encoder.final_norm is None else ops.layer_norm(x, encoder.final_norm)
        x = x.to(encoder.layers[0].qkv.weight.dtype) if last else x
        for index in range(last if stop is None else stop):
            device = placement.layers[index]
            x = self._layer(index)(x.to(device), batch.on(device)[1])
            if index == last - 1 and encoder.final_norm is not None:
                x = ops.layer_norm(x, encoder.final_norm)
            yield x

    def run(self, batch: Batch, see: Callable[[int, Tensor], None], stop: int | None = None) -> None:
        """Show `see` the number and the packed state of the embeddings and of each layer, up to layer `stop`."""
        encoder = self.model.encoder
        if encoder.backend == "own":
            for number, state in enumerate(self.layers(batch, stop)):
                see(number, state)
            return

        def until(number: int, state: Tensor) -> None:
            see(number, state)
            if number == stop:
                raise _Enough

        views, layout, _ = batch.on(self.model.placement.main)
        with contextlib.suppress(_Enough):
            see(len(encoder.layers), encoder.visit(views["ids"], None, layout, until))

    def _layer(self, index: int) -> Layer:
        layer, device = self.model.encoder.layers[index], self.model.placement.layers[index]
        if index not in self.model.placement.spilled:
            return layer
        if device not in self._slots:
            self._slots[device] = copy.deepcopy(layer).to(device)
        slot = self._slots[device]
        # On the stream that still reads the slot's last weights, so they are not overwritten too early.
        for ours, theirs in zip(slot.parameters(), layer.parameters(), strict=True):
            ours.copy_(theirs, non_blocking=True)
        return slot


def make_store(model: Loaded, examples: Sequence[Sequence[int]]) -> Store:
    """Token numbers of examples, special tokens included."""
    return Store([{"input_ids": ids} for ids in examples], {}, model.config.position_offset, model.config.max_length)


def embed(
    states: States,
    store: Store,
    spans: np.ndarray,
    layer: int | None = None,
    last_first: bool = False,
    tell: Callable[[int], None] = lambda count: None,
) -> Tensor:
    """Layers x examples x neurons in fp32, on the last layer's device: means over `spans` (start and stop).

    With `layer` only that one (0: the embeddings). With `last_first` the last layer gives the first token's state
    instead of a mean. `tell` is told how many examples are done.
    """
    model = states.model
    config, device = model.config, model.placement.last
    wanted = range(config.layers + 1) if layer is None else [layer]
    out = torch.empty((len(wanted), len(store), config.hidden), device=device)
    done = 0
    try:
        with torch.inference_mode():
            for members in by_length(store.lengths, model.budget):
                batch = Batch(store, members, spans)
                rows = _send(torch.from_numpy(members), device)

                def pool(number: int, state: Tensor, batch: Batch = batch, rows: Tensor = rows) -> None:
                    if number in wanted:
                        cls = last_first and number == config.layers
                        pooled = batch.first(state) if cls else batch.average(state)
                        out[number - wanted[0]].index_copy_(0, rows, pooled.to(device))

                states.run(batch, pool, layer)
                done += len(members)
                tell(done)
    except torch.OutOfMemoryError:
        restart_if_crowded()
        raise UserError(
            f"a batch of {model.budget} tokens does not fit beside the weights; use a smaller --token-budget"
        ) from None
    return out
