"""Tiny random models of the library's families, as published folders: config.json, safetensors, tokenizer.json."""

from functools import partial
from pathlib import Path

import torch
from tests.unit.tokenizers_for_tests import bert_tokenizer, family_tokenizer, xlmr_tokenizer
from tokenizers import Tokenizer, processors

SHAPE = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 80, "initializer_range": 0.15,
}  # fmt: skip
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
ROBERTA = SHAPE | NO_DROPOUT | {"pad_token_id": 1, "type_vocab_size": 1}
DECODER = SHAPE | {"num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4, "dropout_rate": 0.0}
DISENTANGLED = {
    "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16, "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip


def t5_tokenizer() -> Tokenizer:
    """With whole words, and with T5's frame: nothing before a text, </s> behind it."""
    tokenizer = xlmr_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return tokenizer


# The library's configuration, the class of the published model, the tokenizer, settings.
FAMILIES = {
    "bert": ("Bert", "ForMaskedLM", bert_tokenizer, SHAPE | NO_DROPOUT),
    "distilbert": (
        "DistilBert", "ForMaskedLM", bert_tokenizer,
        {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 80, "dropout": 0.0,
         "attention_dropout": 0.0, "initializer_range": 0.15},
    ),
    "roberta": ("Roberta", "ForMaskedLM", xlmr_tokenizer, ROBERTA),
    "xlm-roberta": ("XLMRoberta", "ForMaskedLM", xlmr_tokenizer, ROBERTA),
    "electra": ("Electra", "ForPreTraining", bert_tokenizer, SHAPE | NO_DROPOUT | {"embedding_size": 16}),
    "deberta-v2": (
        "DebertaV2", "ForMaskedLM", partial(family_tokenizer, "deberta-v2"), SHAPE | NO_DROPOUT | DISENTANGLED
    ),
    "modernbert": (
        "ModernBert", "ForMaskedLM", partial(family_tokenizer, "modernbert"),
        SHAPE | {"pad_token_id": 3, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
                 "local_attention": 8, "global_attn_every_n_layers": 2},
    ),
    "t5": ("T5", "ForConditionalGeneration", t5_tokenizer, T5),
    "mt5": ("MT5", "ForConditionalGeneration", t5_tokenizer, T5),
    "xglm": (
        "XGLM", "ForCausalLM", xlmr_tokenizer,
        {"d_model": 32, "num_layers": 3, "attention_heads": 4, "ffn_dim": 48, "max_position_embeddings": 80,
         "dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.15},
    ),
    "bloom": (
        "Bloom", "ForCausalLM", partial(family_tokenizer, "bloom"),
        {"hidden_size": 32, "n_layer": 3, "n_head": 4, "initializer_range": 0.15},
    ),
    "gpt2": (
        "GPT2", "LMHeadModel", partial(family_tokenizer, "gpt2"),
        {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 80, "initializer_range": 0.15, "resid_pdrop": 0.0,
         "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0},
    ),
    "llama": ("Llama", "ForCausalLM", partial(family_tokenizer, "llama"), DECODER),
    "qwen3": ("Qwen3", "ForCausalLM", partial(family_tokenizer, "qwen3"), DECODER),
    "gemma2": ("Gemma2", "ForCausalLM", partial(family_tokenizer, "gemma3"), DECODER | {"sliding_window": 8}),
    "gemma3_text": ("Gemma3", "ForCausalLM", partial(family_tokenizer, "gemma3"), DECODER | {"sliding_window": 8}),
}  # fmt: skip
CAUSAL = {"xglm", "bloom", "gpt2", "llama", "qwen3", "gemma2", "gemma3_text"}


def write_family(family: str, folder: Path, **changes) -> Path:
    """A model whose norms and biases are not those of a fresh one either, in a published model's layout."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    name, head, tokenizer, settings = FAMILIES[family]
    tokenizer = tokenizer()
    config = getattr(transformers, f"{name}{'Text' * family.endswith('_text')}Config")
    config = config(vocab_size=tokenizer.get_vocab_size(), **settings | changes)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = getattr(transformers, f"{name}{head}")(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
