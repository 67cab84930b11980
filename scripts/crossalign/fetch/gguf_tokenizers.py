"""The tokenizer in a GGUF file as the library `tokenizers` has it, token by token the original's."""

from collections.abc import Callable
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

# Kinds of pieces, as sentencepiece numbers them.
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6
# How Qwen 2 cuts a text into words.
QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
Field = Callable[[str], Any]


def byte_level_tokenizer(field: Field) -> Tokenizer:
    """Qwen's: pieces of bytes, with their merges."""
    tokens, kinds, merges = (field(f"tokenizer.ggml.{key}") for key in ("tokens", "token_type", "merges"))
    number = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(number, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.normalizer = normalizers.NFC()
    spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN), "isolated"), spelling])
    tokenizer.decoder = decoders.ByteLevel()
    _add(tokenizer, tokens, kinds, normalized=False)
    return tokenizer


def sentencepiece_tokenizer(field: Field) -> Tokenizer:
    """Gemma's, sentencepiece's BPE: of two neighbours those join first whose piece scores highest.

    A piece may have been made of several pairs of pieces: all are merges, in the order of the piece's score.
    """
    tokens, scores, kinds = (field(f"tokenizer.ggml.{key}") for key in ("tokens", "scores", "token_type"))
    unknown, first = (field(f"tokenizer.ggml.{name}_token_id") for name in ("unknown", "bos"))
    # GGUF writes runs of spaces, pieces that users defined, with spaces instead of sentencepiece's mark.
    tokens = [t.replace(" ", "▁") if kind == USER_DEFINED else t for t, kind in zip(tokens, kinds, strict=True)]
    number = {token: index for index, token in enumerate(tokens)}
    plain = [index for index, kind in enumerate(kinds) if kind not in (UNKNOWN, CONTROL, USER_DEFINED, BYTE)]
    joinable = {tokens[index] for index in plain}
    merges = []
    for index in sorted(plain, key=lambda index: -scores[index]):
        piece = tokens[index]
        pairs = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        merges += sorted((p for p in pairs if joinable.issuperset(p)), key=lambda p: (number[p[0]], number[p[1]]))
    tokenizer = Tokenizer(models.BPE(number, merges, unk_token=tokens[unknown], fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    bos = tokens[first]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, first)]
    )
    # Pieces of users are found in the normalised text, where a space is a mark.
    _add(tokenizer, tokens, kinds, normalized=True)
    return tokenizer


def _add(tokenizer: Tokenizer, tokens: list[str], kinds: list[int], normalized: bool) -> None:
    """Tokens that no text is cut into, and those that users defined."""
    pairs = list(zip(tokens, kinds, strict=True))
    controls = [token for token, kind in pairs if kind in (UNKNOWN, CONTROL)]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in controls])
    users = [token for token, kind in pairs if kind == USER_DEFINED]
    tokenizer.add_tokens([AddedToken(token, normalized=normalized) for token in users])
