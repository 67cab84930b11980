"""Hidden states of packed batches, averaged over a span of each example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from crossalign.embedding.model import Loaded
from crossalign.engine.batches import Store, by_length, places_within
from crossalign.engine.parts import batch_inputs, send
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic
from crossalign.runtime.gpus import restart_if_crowded


class Batch:
    """One batch on a device: its tokens and layout, and the spans to average."""

    def __init__(self, store: Store, members: np.ndarray, spans: np.ndarray, device: torch.device) -> None:
        batch = store.assemble(members)
        self.layout, tensors = batch_inputs(batch.over(send(batch.vector(), device)))
        self.ids, self.positions = tensors["ids"], tensors["positions"]
        lengths = store.lengths[members]
        first = np.cumsum(lengths) - lengths
        start, stop = spans[members].T
        counts = stop - start
        within = places_within(counts)
        # Tokens to average, one span after another; None: all of them.
        whole = (counts == lengths).all()
        self._index = None if whole else send(within + np.repeat(first + start, counts), device)
        self._counts, self._first = send(counts, device), send(first, device)

    def average(self, state: Tensor) -> Tensor:
        """The mean over each span, in fp32."""
        kept = state if self._index is None else state.index_select(0, self._index)
        return torch.segment_reduce(kept.float(), "mean", lengths=self._counts, axis=0, unsafe=True)

    def first(self, state: Tensor) -> Tensor:
        """The state of each example's first token."""
        return state.index_select(0, self._first).float()


def make_store(model: Loaded, examples: Sequence[Sequence[int]]) -> Store:
    """Token numbers of examples, special tokens included."""
    return Store([{"input_ids": ids} for ids in examples], {}, model.config.position_offset, model.config.max_length)


@torch.inference_mode()
def embed(
    model: Loaded,
    store: Store,
    spans: np.ndarray,
    layer: int | None = None,
    last_first: bool = False,
    tell: Callable[[int], None] = lambda count: None,
) -> np.ndarray:
    """Layers x examples x neurons in fp32: means over `spans` (start and stop).

    With `layer` only that one (0: the embeddings). With `last_first` the last layer gives the first token's state
    instead of a mean. `tell` is told how many examples are done.
    """
    last = model.config.layers
    wanted = range(last + 1) if layer is None else [layer]
    out = torch.empty((len(wanted), len(store), model.config.hidden), device=model.device)
    done = 0
    try:
        for members in by_length(store.lengths, model.budget):
            batch = Batch(store, members, spans, model.device)
            states = model.encoder.packed(batch.ids, batch.positions, None, batch.layout, all_layers=True)
            rows = send(members, model.device)
            for place, number in enumerate(wanted):
                cls = last_first and number == last
                out[place, rows] = batch.first(states[number]) if cls else batch.average(states[number])
            done += len(members)
            tell(done)
    except torch.OutOfMemoryError:
        restart_if_crowded()
        raise UserError(
            f"a batch of {model.budget} tokens does not fit beside the weights; use a smaller --token-budget"
        ) from None
    return out.cpu().numpy()


def write_array(path: Path, array: np.ndarray) -> None:
    """A .npy file, complete or not at all."""
    with write_atomic(path, "wb") as stream:
        # What `np.save` writes; its own errors do not tell a full disk from others.
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(np.ascontiguousarray(array))
