"""Small models of the library, of every family that the encoder computes."""

import torch

SHAPE = {
    "vocab_size": 160,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 48,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    # Large weights: with the usual 0.02 a wrong attention would hardly show.
    "initializer_range": 0.3,
}
# The same shape in XGLM's words.
XGLM = {
    "vocab_size": 160,
    "d_model": 16,
    "num_layers": 3,
    "attention_heads": 4,
    "ffn_dim": 24,
    "max_position_embeddings": 48,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "init_std": 0.3,
}
NAMES = {
    "bert": "Bert",
    "xlm-roberta": "XLMRoberta",
    "roberta-prelayernorm": "RobertaPreLayerNorm",
    "xlm-roberta-xl": "XLMRobertaXL",
    "xglm": "XGLM",
}


def library_model(family):
    """With large random weights in norms and biases too, for evaluation."""
    import transformers

    torch.manual_seed(3)
    shape = XGLM if family == "xglm" else SHAPE if family == "bert" else SHAPE | {"type_vocab_size": 1}
    pad = {} if family == "bert" else {"pad_token_id": 1}
    config = getattr(transformers, f"{NAMES[family]}Config")(**shape, **pad)
    # Encoders with offset positions have no pooler in what follows.
    pooler = {} if family in ("bert", "xglm") else {"add_pooling_layer": False}
    model = getattr(transformers, f"{NAMES[family]}Model")(config, **pooler)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, 0.5, 0.2)
    return model.eval()
