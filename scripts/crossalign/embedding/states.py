"""Hidden states of packed batches, averaged over a span of each example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from crossalign.embedding.model import Loaded
from crossalign.engine.batches import Store, by_length, places_within
from crossalign.engine.parts import batch_inputs, send
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic
from crossalign.runtime.gpus import restart_if_crowded


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
            batch = store.assemble(members)
            layout, tensors = batch_inputs(batch.over(send(batch.vector(), model.device)))
            states = model.encoder.packed(tensors["ids"], tensors["positions"], None, layout, all_layers=True)
            start, stop = spans[members].T
            first = np.cumsum(store.lengths[members]) - store.lengths[members]
            # Tokens to average, one span after another.
            places = send(places_within(stop - start) + np.repeat(first + start, stop - start), model.device)
            rows, firsts, counts = (send(each, model.device) for each in (members, first, stop - start))
            for place, number in enumerate(wanted):
                state = states[number]
                if last_first and number == last:
                    out[place, rows] = state.index_select(0, firsts).float()
                else:
                    kept = state.index_select(0, places).float()
                    out[place, rows] = torch.segment_reduce(kept, "mean", lengths=counts, axis=0, unsafe=True)
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
