"""One step function for all training: forward, loss, backward, clipping, AdamW, schedule.

On the CPU a step runs eagerly on exact shapes. On CUDA it is captured once per shape as a graph and replayed: the
learning rate, the step number and the losses live on the device, so the host never waits for it within an epoch.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crossalign.engine.batches import Batch
from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.optimiser import AdamW, Arena
from crossalign.engine.parts import Part, batch_inputs, states
from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import restart_if_crowded

log = logging.getLogger(__name__)

# Steps the host may be ahead of the GPU: enough to keep it busy, few enough to react to signals.
_AHEAD = 32


class Engine:
    """Trains an encoder and further modules on the weighted sum of the parts' losses."""

    def __init__(
        self,
        encoder: BaseEncoder,
        modules: dict[str, nn.Module],
        parts: Sequence[Part],
        rates: np.ndarray,
        optimiser: AdamW | None = None,
        precision: str = "fp32",
        capture: bool | None = None,
        static: bool | None = None,
    ) -> None:
        self.encoder, self.parts, self.precision = encoder, list(parts), precision
        self.device = encoder.word.weight.device
        low = precision == "bf16"
        self.arena = Arena(
            {"encoder": encoder, **modules},
            optimiser or AdamW(),
            lambda name: low and name.startswith("encoder.") and encoder.is_low(name.removeprefix("encoder.")),
        )
        cuda = self.device.type == "cuda"
        # What dropout draws from.
        self.generator = torch.cuda.default_generators[self.device.index] if cuda else torch.default_generator
        self.numbers = self.arena.numbers(rates)
        self.losses = torch.zeros(len(rates), dtype=torch.float32, device=self.device)
        self.step_number = torch.zeros(1, dtype=torch.long, device=self.device)
        self.micro = 1
        self.capture = cuda if capture is None else capture
        # Static shapes without capture are for tests.
        self.static = self.capture if static is None else static
        self._graphs: dict[tuple, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self._pool = None
        self._warm: set[tuple[int, bool, bool]] = set()
        self._ahead: deque = deque()

    # ---- one step -----------------------------------------------------------------------------------------------

    def step(self, *members: np.ndarray) -> None:
        """Train on one batch: for each part the numbers of its examples."""
        while True:
            state = self.generator.get_state()
            try:
                self._run(members)
                return
            except torch.OutOfMemoryError:
                restart_if_crowded()
                if len(members[0]) <= self.micro:
                    raise UserError(
                        "out of memory even with one example at a time; use a smaller maximal length"
                    ) from None
            self._forget_graphs()
            self.generator.set_state(state)
            self.micro *= 2
            log.warning(
                "out of memory: batches of %d now run in %d pieces, with the same effect",
                self.parts[0].batch_size, self.micro,
            )  # fmt: skip

    def _pieces(self, members: Sequence[np.ndarray]) -> list[tuple[int, Any, Any]]:
        """What runs one after another: the part's number, its examples, all targets of the step."""
        pieces = []
        for number, (part, batch) in enumerate(zip(self.parts, members, strict=True)):
            totals = part.store.targets[batch].sum(0)
            pieces += [(number, piece, totals) for piece in np.array_split(batch, min(self.micro, len(batch)))]
        return pieces

    def _run(self, members: Sequence[np.ndarray]) -> None:
        pieces = self._pieces(members)
        for index, (number, piece, totals) in enumerate(pieces):
            first, last = index == 0, index == len(pieces) - 1
            part = self.parts[number]
            store, rows = part.store, None
            if self.static:
                rows = -(-part.batch_size // self.micro)
            else:
                # Within a batch the order does not matter, and neighbours of like length waste less in attention.
                piece = piece[np.argsort(-store.lengths[piece], kind="stable")]
            batch = store.assemble(piece, rows)
            batch.tensors["targets"] = np.stack([store.targets[piece].sum(0), totals])
            if self.capture:
                self._replay(number, batch, first, last)
            else:
                self._work(number, batch.over(torch.from_numpy(batch.vector()).to(self.device)), first, last)
        if self.device.type == "cuda":
            event = torch.cuda.Event()
            event.record()
            self._ahead.append(event)
            if len(self._ahead) > _AHEAD:
                self._ahead.popleft().synchronize()

    def _work(self, number: int, batch: Batch, first: bool, last: bool) -> None:
        """Forward and backward of one piece, which is on the device, and, after the last piece, the update."""
        gradients = self.arena.gradients
        gradients.begin(first)
        with torch.enable_grad():
            loss = self._loss(self.parts[number], batch)
            loss.backward()
        with torch.no_grad():
            gradients.collect()
            value = loss.detach().float().view(1)
            if first:
                self.losses.index_copy_(0, self.step_number, value)
            else:
                self.losses.index_add_(0, self.step_number, value)
            if last:
                self.arena.update(self.numbers[self.step_number].view(-1))
                self.step_number.add_(1)

    def _loss(self, part: Part, batch: Batch) -> Tensor:
        layout, tensors = batch_inputs(batch)

        def encode(encoder: BaseEncoder | None = None) -> Tensor:
            if encoder is not None:
                return states(encoder, layout, tensors)
            return states(self.encoder, layout, tensors, self.arena.gradients)

        with self.mixed():
            loss = part.loss(encode, tensors) * part.weight
        # A loss of several terms has divided each of them by its own total.
        if self.micro > 1 and tensors["targets"].dim() == 1:
            own, total = tensors["targets"]
            loss = loss * (own / total.clamp(min=1))
        return loss

    def mixed(self) -> contextlib.AbstractContextManager:
        """Heads keep fp32 weights and are cast on the fly; they are small."""
        if self.precision == "bf16":
            return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)
        return contextlib.nullcontext()

    # ---- graphs -------------------------------------------------------------------------------------------------

    def _replay(self, number: int, batch: Batch, first: bool, last: bool) -> None:
        key, vector = (number, batch.shape, first, last), torch.from_numpy(batch.vector())
        if key not in self._graphs:
            static = vector.to(self.device)
            work = partial(self._work, number, batch.over(static), first, last)
            try:
                self._graphs[key] = self._record((number, first, last), work), static
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                log.warning("the step cannot be captured as a CUDA graph (%s): steps run eagerly, slower", error)
                self.capture = False
                work()
                return
        graph, static = self._graphs[key]
        static.copy_(vector.pin_memory(), non_blocking=True)
        graph.replay()

    def _record(self, kind: tuple[int, bool, bool], work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        if kind not in self._warm:
            self._warm_up(work)
            self._warm.add(kind)
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        cause = None
        try:
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                try:
                    work()
                except BaseException as error:
                    cause = error
                    raise
        except RuntimeError as error:
            # Ending a capture that broke off, also by Ctrl-C, may raise an error of its own in place of the cause.
            raise cause or error from None
        return graph

    def _warm_up(self, work: Callable[[], None]) -> None:
        """Run once outside a graph, where libraries may allocate and compile, and undo what that changed."""
        generator, arena = self.generator.get_state(), self.arena
        buffers = [self.losses, self.step_number, arena.low, arena.low_grad, arena.grad, *arena.state().values()]
        saved = [buffer.clone() for buffer in buffers]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)
        for buffer, value in zip(buffers, saved, strict=True):
            buffer.copy_(value)
        self.generator.set_state(generator)

    def _forget_graphs(self) -> None:
        self._graphs.clear()
        self._warm.clear()
        self._pool = None
        self.arena.gradients.begin(first=True)
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()

    # ---- state --------------------------------------------------------------------------------------------------

    def seed_dropout(self, seed: int) -> None:
        """Start the stream of random numbers for dropout."""
        self.generator.manual_seed(seed)

    def state(self) -> dict[str, Tensor]:
        """Everything that decides how training goes on."""
        return {
            **self.arena.state(),
            "generator": self.generator.get_state(),
            "step": self.step_number,
            "losses": self.losses,
            # Into how many pieces a batch is split, which a lack of memory has decided.
            "micro": torch.tensor(self.micro),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from a `state()`."""
        self.arena.load_state(state)
        self.step_number.copy_(state["step"])
        self.losses.copy_(state["losses"])
        self.micro = int(state["micro"])
        self.generator.set_state(state["generator"].cpu())
