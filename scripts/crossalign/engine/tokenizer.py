"""Tokenizers: read from a model's folder, or trained on text, BERT's way: case and accents kept, ideographs alone."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Special tokens in the order of their numbers, by family, and which of them is which. A decoder masks nothing.
SPECIALS = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "xlm-roberta": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    "xglm": ("<s>", "<pad>", "</s>", "<unk>"),
}
# How one text and how two texts are framed. XGLM puts </s> before a text and nothing behind it.
_FRAMES = {
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "xlm-roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "xglm": ("</s> $A", "</s> $A </s> </s> $B"),
}


def load_tokenizer(folder: str | Path, vocab_size: int | None = None) -> Tokenizer:
    """The tokenizer.json of a folder, or a WordPiece tokenizer from its vocab.txt, checked against the model's size.

    Nothing else is converted: the library (5.17) would change tokens of sentencepiece models, those of mT5, DeBERTa
    and Llama among them.
    """
    folder = Path(folder)
    if (folder / "tokenizer.json").exists():
        tokenizer = read_tokenizer(folder / "tokenizer.json")
    elif (folder / "vocab.txt").exists():
        settings = folder / "tokenizer_config.json"
        lowercase = settings.exists() and json.loads(settings.read_text(encoding="utf-8")).get("do_lower_case", True)
        tokenizer = wordpiece_tokenizer(folder / "vocab.txt", bool(lowercase))
    else:
        raise UserError(
            f"{folder} has neither tokenizer.json nor vocab.txt; a tokenizer in another form (sentencepiece, say) is "
            "not read, save it as tokenizer.json with the model's own tools"
        )
    if vocab_size is not None:
        _check_size(folder, tokenizer, vocab_size)
    return tokenizer


def read_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer.json, without padding and truncation."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise UserError(f"{path} cannot be read: {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _check_size(folder: Path, tokenizer: Tokenizer, vocab_size: int) -> None:
    """Refuse the tokenizer of another model: one with too many pieces, or with less than half as many as embeddings."""
    count = tokenizer.get_vocab_size()
    added = tokenizer.get_added_tokens_decoder() if count > vocab_size else {}
    # Gemma 3 has a token for images that its text models have no embedding of.
    beyond = sum(1 for number, token in added.items() if number >= vocab_size and token.special)
    if not vocab_size / 2 <= count <= vocab_size + beyond:
        raise UserError(
            f"{folder}: the tokenizer knows {count} pieces but the model has {vocab_size} embeddings; the tokenizer "
            "belongs to another model"
        )
    if beyond:
        # A text that spells such a token is read as a text.
        tokenizer.encode_special_tokens = True


def wordpiece_tokenizer(vocabulary: Path, lowercase: bool = False) -> Tokenizer:
    """BERT's tokenizer from its vocabulary file."""
    from tokenizers import models

    tokenizer = _tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"), lowercase=lowercase)
    if missing := [token for token in SPECIALS["bert"] if tokenizer.token_to_id(token) is None]:
        raise UserError(f"{vocabulary} is no vocabulary of BERT's kind: {', '.join(missing)} missing")
    return framed(tokenizer, "bert")


def train_vocabulary(
    lines: Callable[[], Iterable[str]],
    size: int,
    style: str = "bert",
    up_to: bool = False,
    letters: Iterable[str] = (),
) -> Tokenizer:
    """A tokenizer with `size` pieces; `style` says what the special tokens are called (bert, xlm-roberta, xglm).

    With `up_to` a text that does not support so many pieces gives what it supports.

    `lines` gives the text and is called twice. Every letter of it gets a piece for the beginning and one for the inside
    of a word, so that each word made of known letters can be spelt; so has each of `letters`. They count towards the
    size.
    """
    from tokenizers import models, trainers

    unknown = "[UNK]" if style == "bert" else "<unk>"
    tokenizer = _tokenizer(models.WordPiece(unk_token=unknown), strip_accents=False)
    known = _letters(tokenizer, set(chain.from_iterable(map(set, lines()))).union(letters))
    if not known:
        raise UserError("there is no text to make a vocabulary from")
    given = [*SPECIALS[style], *known]
    if len(given) > size:
        raise UserError(
            f"a vocabulary of {size} pieces has no room for the letters of the text; at least {len(given)} are needed"
        )
    # Equally frequent pairs are merged in the order of their numbers. Left alone the library numbers the letters in
    # the order of a hash table; given as special tokens they have fixed numbers, and so has everything made of them.
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, special_tokens=given, limit_alphabet=size, show_progress=False
    )
    tokenizer.train_from_iterator(lines(), trainer)
    learnt = tokenizer.get_vocab()
    if len(learnt) < size and not up_to:
        raise UserError(
            f"the text supports a vocabulary of {len(learnt)} pieces only, not {size}; give more text or ask for fewer"
        )
    return framed(_tokenizer(models.WordPiece(learnt, unk_token=unknown), strip_accents=False), style)


# A sign that comes less often in a text is a word of another language, or a slip.
_LEAST = 5


def letters_of(texts: Iterable[Iterable[str]]) -> set[str]:
    """The letters that texts are written with; marks above, below and between them count as letters."""
    counts = [Counter(chain.from_iterable(lines)) for lines in texts]
    return {
        char
        for count in counts
        for char, times in count.items()
        if times >= _LEAST and unicodedata.category(char)[0] in "LM"
    }


def _letters(tokenizer: Tokenizer, letters: Iterable[str]) -> list[str]:
    """Pieces that spell every letter: both forms where it may stand inside a word."""
    found: set[str] = set()
    for letter in letters:
        for char in tokenizer.normalizer.normalize_str(letter).strip():
            found.add(char)
            joined = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(f"a{char}a"))
            if len(joined) == 1:
                found.add(f"##{char}")
    return sorted(found)


def _tokenizer(model, lowercase: bool = False, strip_accents: bool | None = None) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def framed(tokenizer: Tokenizer, style: str) -> Tokenizer:
    """With the special tokens of a style, which it puts around one text and two."""
    from tokenizers import processors

    single, pair = _FRAMES[style]
    named = [(token, tokenizer.token_to_id(token)) for token in SPECIALS[style] if token in pair]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=named)
    tokenizer.add_special_tokens(list(SPECIALS[style]))
    return tokenizer
