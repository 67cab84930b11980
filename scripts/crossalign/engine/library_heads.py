"""Language models of the library, to go on with text: the base model, and its own head as our loss uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from crossalign.engine.library import (
    LibraryEncoder,
    empty_library_encoder,
    is_masked,
    load_pretrained,
)
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class LibraryHead(nn.Module):
    """The head of a masked or causal model of the library, whatever its layers are.

    It is the library's model with two parts taken out: a stand-in for the base model hands it hidden states, and the
    last product, with the table of words, is left to our loss.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.prefix = model.base_model_prefix
        scores = model.get_output_embeddings()
        self.scores = next(name for name, module in model.named_modules() if module is scores)
        words = model.get_input_embeddings().weight
        # A table of its own, where the model does not use that of the words again.
        self.table = None if scores.weight is words else scores.weight
        self.bias = getattr(scores, "bias", None)
        model.set_submodule(self.scores, nn.Identity())
        self.base = _Given()
        setattr(model, self.prefix, self.base)
        self.model = model

    def inner(self, states: Tensor) -> Tensor:
        """What meets the table of words, (n, neurons)."""
        self.base.states = states[None]
        ids = torch.zeros(1, len(states), dtype=torch.long, device=states.device)
        return self.model(ids).logits[0].to(states.dtype)

    def tensors(self, encoder: LibraryEncoder) -> dict[str, Tensor]:
        """What the folder of the whole model holds; weights that two modules share once."""
        named = {f"{self.prefix}.{name}": value for name, value in encoder.model.named_parameters()}
        named |= self.model.named_parameters()
        own = {f"{self.scores}.weight": self.table, f"{self.scores}.bias": self.bias}
        known = set(named.values())
        named |= {name: value for name, value in own.items() if value is not None and value not in known}
        return {name: value.detach() for name, value in named.items()}


class _Given(nn.Module):
    """Stands for the base model and gives the states that it was handed."""

    states: Tensor | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

        states, self.states = self.states, None
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=states)


def load_language_model(folder: str | Path) -> tuple[LibraryEncoder, LibraryHead]:
    """The base model and the head of a folder; a UserError where the library's model cannot be taken apart."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    folder, empty = Path(folder), empty_library_encoder(folder)
    shape, config = empty.config, empty.model.config
    known = (AutoModelForCausalLM if shape.causal else AutoModelForMaskedLM)._model_mapping
    if type(config) not in known or not (shape.causal or is_masked(config)):
        raise UserError(f"{folder}: the library has no language model of type '{shape.family}' to go on with text")
    if getattr(config, "final_logit_softcapping", None):
        raise UserError(
            f"{folder}: '{shape.family}' caps its scores (final_logit_softcapping), which our loss does not"
        )
    model, _ = load_pretrained(folder, config, known[type(config)], torch.float32)
    base = model.base_model
    if not isinstance(model.get_output_embeddings(), nn.Linear):
        raise UserError(
            f"{folder}: the head of '{shape.family}' does not end in a product with words; use another model"
        )
    head = LibraryHead(model)
    return LibraryEncoder(base, shape), head
