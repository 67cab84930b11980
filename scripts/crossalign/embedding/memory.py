"""How much memory of a GPU sentence vectors take."""

# Tokens of a batch on a GPU unless the command line says otherwise.
BATCH = 32768


def embedding_bytes(parameters: int, layers: int, neurons: int, tokens: int = BATCH, size: int = 2) -> int:
    """Bytes for a model's weights and a batch: the states of all layers, and what is computed within one.

    `size`: bytes of a number, 2 in bf16. The inner states of a layer are taken to be four times as wide as the outer.
    """
    return size * parameters + tokens * neurons * (size * (layers + 17) + 8)
