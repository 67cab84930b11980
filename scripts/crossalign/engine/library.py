"""The second backend: any text encoder or decoder of the library, behind the interface of our own encoder.

Slower than ours and general. Never remote code, never pickle: `transformers.AutoModel` from a local folder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crossalign.engine.encoder import BaseEncoder
from crossalign.engine.layout import Layout
from crossalign.engine.ops import Gradients
from crossalign.engine.seeds import torch_seeded
from crossalign.engine.shape import check_architecture
from crossalign.engine.weights import Shards, audit, check_finite, library_knows, plain_name, read_config
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# What the library's families call the dropout of their hidden states. Decoders have none; their heads take the
# library's own default.
_DROPOUTS = ("hidden_dropout_prob", "dropout", "dropout_rate", "resid_pdrop", "hidden_dropout")
_DROPOUT = 0.1
# Families with relative positions know no longest sequence; this one fits the memory.
_LONGEST = 2048
# Decoders that tell sequences in one row apart by positions that start again.
PACKED = ("gemma", "gemma2", "gemma3_text", "gpt2", "granite", "llama", "olmo2", "qwen2", "qwen3", "smollm3")
# The library's name for a decoder, such as Gemma 3, that sees what is behind a token, too.
BOTH_SIDES = "use_bidirectional_attention"
POOLER = ("pooler.dense.weight", "pooler.dense.bias")


@dataclass(frozen=True)
class LibraryConfig:
    """What the engine asks of a model, under the names that `EncoderConfig` has for it."""

    vocab_size: int
    hidden: int
    layers: int
    max_length: int
    hidden_dropout: float
    causal: bool
    family: str
    pad_id: int
    # Segments that the model tells apart.
    types: int = 0
    # The library adds its own.
    position_offset: int = 0
    # config.json as it was read.
    raw: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    def to_huggingface(self) -> dict[str, Any]:
        """The dictionary to write as config.json."""
        return self.raw


class LibraryEncoder(BaseEncoder):
    """A base model of the library. Packed tokens become a padded grid on the way in, and packed again on the way out.

    State i is the input of layer i, the last state is `last_hidden_state`: the library's `output_hidden_states`.
    """

    backend = "library"
    # Rotary tables, masks and norms of the library take the type of the embeddings: all weights have one type.
    low_precision = ("",)

    def __init__(self, model: PreTrainedModel, config: LibraryConfig, backend: str = "library") -> None:
        super().__init__(config)
        self.backend = backend
        # Before the model: parameters of layers are then called `layers.<i>.`, as in our own encoder.
        self.layers = find_layers(model)
        self.model = model
        self.layers[0].register_forward_pre_hook(_in_its_type, with_kwargs=True)

    @property
    def word(self) -> nn.Embedding:
        """The table of words; families scale or normalise what it gives elsewhere."""
        return self.model.get_input_embeddings()

    def packed(
        self,
        ids: Tensor,
        positions: Tensor,
        types: Tensor | None,
        layout: Layout,
        all_layers: bool = False,
        into: Gradients | None = None,
    ) -> Tensor | list[Tensor]:
        """Hidden states (tokens, hidden) of packed tokens. In a grid the library counts positions itself."""
        # The grid of a random batch of a treebank has four times as many cells as tokens.
        if layout.filled and not all_layers and self.packs:
            return self._row(ids, positions)
        # A static shape may be longer than the model has positions; no token lies there.
        length = min(layout.length, self.config.max_length)

        def grid(tokens: Tensor) -> Tensor:
            return layout.to_grid(tokens[:, None])[:, :length, 0]

        real = layout.keys()[:, :length]
        # Some families count positions by the tokens that are no padding.
        padded = grid(ids).masked_fill(~real, self.config.pad_id)
        inputs = {"input_ids": padded, "attention_mask": self._mask(real)}
        if types is not None and self.config.types > 1:
            inputs["token_type_ids"] = grid(types)
        # The weights' own types decide the precision.
        with torch.autocast(ids.device.type, enabled=False):
            output = self.model(**inputs, output_hidden_states=all_layers)
        states = [*output.hidden_states[:-1], output.last_hidden_state] if all_layers else [output.last_hidden_state]
        shape = (*inputs["input_ids"].shape, self.config.hidden)
        if all_layers and (len(states) != self.config.layers + 1 or {state.shape for state in states} != {shape}):
            raise UserError(f"models of type '{self.config.family}' do not give one state for each layer and token")
        # A model that is spread has its states on several devices.
        states = [functional.pad(state.to(ids.device), (0, 0, 0, layout.length - length)) for state in states]
        states = [layout.from_grid(state) for state in states]
        return states if all_layers else states[0]

    @property
    def packs(self) -> bool:
        """Whether the model takes a batch as one row. It saves a fifth of a step on a GPU."""
        return self.config.causal and self.config.family in PACKED

    def _row(self, ids: Tensor, positions: Tensor) -> Tensor:
        with torch.autocast(ids.device.type, enabled=False):
            return self.model(input_ids=ids[None], position_ids=positions[None]).last_hidden_state[0]

    def _mask(self, real: Tensor) -> Tensor | dict[str, Tensor]:
        """What the library is told of the cells with a token, (sequences, tokens)."""
        config, length = self.model.config, real.shape[1]
        if self.config.family != "gemma3_text" or self.config.causal:
            return real.long()
        # The library makes the masks of a Gemma 3 that sees both sides from the host: no CUDA graph can hold that.
        places = torch.arange(length, device=real.device)
        apart = (places[:, None] - places).abs()
        whole = real[:, None, None, :].expand(-1, 1, length, -1)
        # No row may be empty: softmax would give NaN.
        return {"full_attention": whole, "sliding_attention": whole & (apart < config.sliding_window) | (apart == 0)}

    def keep_rows(self, mapping: Tensor) -> Tensor:
        """The tables look their rows up; token numbers stay, since families read padding and positions off them."""
        for table in self._tables():
            table.register_buffer("kept", mapping.clamp(min=0).to(table.weight.device), persistent=False)
            table.register_forward_pre_hook(lambda module, args: (module.kept[args[0]],))
            table.full_padding = pad = table.padding_idx
            table.padding_idx = None if pad is None or mapping[pad] < 0 else int(mapping[pad])
        return torch.arange(len(mapping))

    def all_rows(self) -> None:
        for table in self._tables():
            table._forward_pre_hooks.clear()
            table.padding_idx = table.full_padding
            del table.kept, table.full_padding

    def _tables(self) -> list[nn.Embedding]:
        """T5 has the table of words twice."""
        weight = self.word.weight
        return [table for table in self.model.modules() if isinstance(table, nn.Embedding) and table.weight is weight]

    @torch.no_grad()
    def redraw(self, layer: int | None, seed: int, positions: bool = False) -> None:
        """Draw all weights of a layer (None: of what is no layer) from the model's own initialiser.

        T5's relative positions lie in its first layer but serve all of them: they stay unless `positions` are drawn.
        """
        inside = {part for each in self.layers for part in each.modules()}
        parts = _inside_out(self.model if layer is None else self.layers[layer])
        parts = [part for part in parts if layer is not None or part not in inside]
        kept = {} if positions else {table.weight: table.weight.clone() for table in self._positions_for_all()}
        for part in parts:
            for parameter in part.parameters(recurse=False):
                # Marks of the library would protect loaded weights; NaN tells what the initialiser leaves out.
                parameter._is_hf_initialized = False
                parameter.fill_(float("nan"))
        with torch_seeded(seed, "library"):
            for part in parts:
                self.model._init_weights(part)
        for parameter, value in kept.items():
            parameter.copy_(value)
        for part in parts:
            for name, parameter in part.named_parameters(recurse=False):
                if parameter.isnan().any():
                    kind = type(part).__name__
                    raise UserError(f"RANDOM-INIT: the initialiser of '{self.config.family}' leaves out {kind}.{name}")

    def _positions_for_all(self) -> list[nn.Embedding]:
        first, *others = (dict(layer.named_modules()) for layer in self.layers)
        return [
            part for path, part in first.items() if isinstance(part, nn.Embedding) and others and path not in others[0]
        ]

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder holds, by the library's names; weights that two modules share once."""
        return {name: value.detach() for name, value in self.model.named_parameters()} | self.pretrained


def _in_its_type(layer: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """XGLM adds positions that are no weights and stay in fp32."""
    dtype = next(layer.parameters()).dtype
    if args:
        return (args[0].to(dtype), *args[1:]), kwargs
    return args, kwargs | {"hidden_states": kwargs["hidden_states"].to(dtype)}


def _inside_out(module: nn.Module) -> list[nn.Module]:
    """A module's parts and itself, in the order in which the library initialises them."""
    return [part for child in module.children() for part in _inside_out(child)] + [module]


def find_layers(model: PreTrainedModel) -> nn.ModuleList:
    """The layers of a model, as many as it says it has."""
    depth = model.config.num_hidden_layers
    for module in model.modules():
        rows = [part for part in module.children() if isinstance(part, nn.ModuleList) and len(part) == depth]
        if len(rows) > 1:
            raise UserError(
                f"the layers of models of type '{model.config.model_type}' lie in {len(rows)} rows, not in one"
            )
        if rows:
            return rows[0]
    raise UserError(f"models of type '{model.config.model_type}' have no row of {depth} layers of their own")


def empty_library_encoder(folder: str | Path, backend: str = "library") -> LibraryEncoder:
    """The modules of the model in a folder, without memory and without weights."""
    from transformers import initialization

    config, raw = read_library_config(Path(folder), backend)
    kind = model_class(config, folder)
    try:
        with torch.device("meta"), initialization.no_init_weights():
            model = kind(config, **_options(kind))
    except (ArithmeticError, ValueError, TypeError, RuntimeError, LookupError, AttributeError, AssertionError) as error:
        path = Path(folder) / "config.json"
        raise UserError(f"{path}: no model of type '{config.model_type}' can be made of these sizes: {error}") from None
    model.tie_weights()
    return LibraryEncoder(model, shape_of(model, raw), backend)


def load_library_encoder(
    folder: str | Path, place: Callable[[str], tuple[torch.device, torch.dtype]], backend: str = "library"
) -> LibraryEncoder:
    """The model of a folder. `place` gives each parameter's device and precision; all have one precision."""
    encoder = _load(Path(folder), place("layers.0")[1], backend)
    for name, parameter in encoder.named_parameters():
        parameter.data = parameter.data.to(*place(name))
    for name, buffer in encoder.named_buffers():
        buffer.data = buffer.data.to(place(name)[0])
    return encoder


def spread_library_encoder(folder: str | Path, dtype: torch.dtype, **where: Any) -> LibraryEncoder:
    """The model of a folder over all GPUs and the host's memory, for evaluation only."""
    return _load(Path(folder), dtype, "library", **{"device_map": "auto"} | where)


def _load(folder: Path, dtype: torch.dtype, backend: str, **where: Any) -> LibraryEncoder:
    """The model of a folder with all its weights and none left over."""
    config, raw = read_library_config(folder, backend)
    kind = model_class(config, folder)
    prefix = f"{kind.base_model_prefix}."
    tensors = Shards(folder, (prefix,))
    # Its scores are capped, which PyTorch's fused attention leaves out.
    options = {"attn_implementation": "eager"} if getattr(config, "attn_logit_softcapping", None) else {}
    try:
        model, info = kind.from_pretrained(
            folder, config=config, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True,
            use_safetensors=True, local_files_only=True, trust_remote_code=False, **options, **_options(kind), **where,
        )  # fmt: skip
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder}: the library cannot load this model: {str(error).splitlines()[0]}") from None
    wrong = {name: (have, want) for name, have, want in info["mismatched_keys"]}
    unused = [plain_name(name, (prefix,)) for name in info["unexpected_keys"]]
    audit(folder, set(info["missing_keys"]) - wrong.keys(), unused, wrong, config.is_encoder_decoder)
    # Where two copies of one table differ, the library uses both, with a warning.
    for copy, name in model.get_expanded_tied_weights_keys(all_submodels=True).items():
        if copy not in model.all_tied_weights_keys:
            raise UserError(f"{folder}: {copy} and {name} differ, but are one table in this model; delete one")
    for name, parameter in model.named_parameters():
        if not parameter.is_meta:  # waits in the host's memory
            check_finite(folder, name, parameter.data)
    # Keys and values of earlier tokens are for writing text.
    model.config.use_cache = False
    encoder = LibraryEncoder(model, shape_of(model, raw), backend)
    encoder.pretrained = {name: tensors.read(name) for name in POOLER if name in tensors.places}
    return encoder


def read_library_config(folder: Path, backend: str = "library") -> tuple[PreTrainedConfig, dict[str, Any]]:
    """The library's configuration, and config.json; a UserError for what this backend does not serve."""
    from transformers import AutoConfig
    from transformers.utils import logging

    # What it warns about is an error here, and job logs have no use for bars.
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    path, raw = folder / "config.json", read_config(folder)
    check_architecture(raw, str(path))
    if not library_knows(raw["model_type"]):
        raise UserError(f"{path}: the library has no model of type '{raw['model_type']}'")
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the library's own checks of values have several types
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if backend == "bidirectional":
        if not hasattr(config, BOTH_SIDES):
            raise UserError(f"{path}: models of type '{config.model_type}' have no {BOTH_SIDES}; use another backend")
        raw = raw | {BOTH_SIDES: True}
        # Made anew: the window of a layer depends on it.
        config = type(config).from_dict(raw)
    if config.get_text_config() is not config:
        raise UserError(f"{path}: '{config.model_type}' is more than a text model; give a model of its text part alone")
    return config, raw


def model_class(config: PreTrainedConfig, folder: str | Path) -> type[PreTrainedModel]:
    """The class of the base model; of an encoder-decoder that of the encoder."""
    from transformers import AutoModel, AutoModelForTextEncoding

    both = config.is_encoder_decoder
    known = (AutoModelForTextEncoding if both else AutoModel)._model_mapping
    where, family = Path(folder) / "config.json", config.model_type
    if type(config) not in known:
        what = "the library does not load the encoder alone" if both else "the library has no base model"
        raise UserError(f"{where}: of '{family}' {what}")
    kind = known[type(config)]
    kind = kind[0] if isinstance(kind, tuple) else kind
    if kind.main_input_name != "input_ids" or getattr(config, "vocab_size", None) is None:
        raise UserError(f"{where}: '{family}' is no text encoder or decoder")
    if getattr(config, "is_decoder", False) and not both and is_masked(config):
        raise UserError(f"{where}: is_decoder makes a decoder of an encoder; remove it")
    return kind


def _options(kind: type[PreTrainedModel]) -> dict[str, Any]:
    """Our heads bring a pooler where one is needed."""
    return {"add_pooling_layer": False} if "add_pooling_layer" in inspect.signature(kind.__init__).parameters else {}


def is_masked(config: PreTrainedConfig) -> bool:
    from transformers import AutoModelForMaskedLM

    return type(config) in AutoModelForMaskedLM._model_mapping


def shape_of(model: PreTrainedModel, raw: dict[str, Any]) -> LibraryConfig:
    config = model.config
    words = model.get_input_embeddings()
    if not isinstance(words, nn.Embedding):
        raise UserError(f"models of type '{config.model_type}' have no plain table of words")
    vocabulary, pad = words.num_embeddings, getattr(config, "pad_token_id", None)
    longest = getattr(config, "max_position_embeddings", None) or _LONGEST
    for name, module in model.named_modules():
        # RoBERTa and its kin: positions start behind the padding index.
        if isinstance(module, nn.Embedding) and "position" in name and module.padding_idx is not None:
            longest = module.num_embeddings - module.padding_idx - 1
    dropouts = [getattr(config, name) for name in _DROPOUTS if isinstance(getattr(config, name, None), int | float)]
    return LibraryConfig(
        vocab_size=vocabulary,
        hidden=config.hidden_size,
        layers=config.num_hidden_layers,
        max_length=longest,
        hidden_dropout=float(dropouts[0]) if dropouts else _DROPOUT,
        causal=_causal(model),
        family=config.model_type,
        pad_id=pad if isinstance(pad, int) and 0 <= pad < vocabulary else 0,
        types=getattr(config, "type_vocab_size", None) or 0,
        raw=raw,
    )


def _causal(model: PreTrainedModel) -> bool:
    """Whether tokens see only what is before them: as attention says or, where it does not, by what predicts words."""
    said = [module.is_causal for module in model.modules() if isinstance(getattr(module, "is_causal", None), bool)]
    if said:
        return any(said)
    return not model.config.is_encoder_decoder and not is_masked(model.config)
