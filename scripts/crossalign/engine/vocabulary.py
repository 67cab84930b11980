"""A WordPiece vocabulary made from text, BERT's way: case and accents kept, ideographs alone, punctuation split off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
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
_UNKNOWN = {"bert": 1, "xlm-roberta": 3, "xglm": 3}
# How one text and how two texts are framed. XGLM puts </s> before a text and nothing behind it.
_FRAMES = {
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "xlm-roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "xglm": ("</s> $A", "</s> $A </s> </s> $B"),
}


def train_vocabulary(
    lines: Callable[[], Iterable[str]],
    size: int,
    style: str = "bert",
    min_frequency: int = 2,
    up_to: bool = False,
) -> Tokenizer:
    """A tokenizer with `size` pieces; `style` says what the special tokens are called (bert, xlm-roberta, xglm).

    With `up_to` a text that does not support so many pieces gives what it supports.

    `lines` gives the text and is called twice. Every letter of it gets a piece for the beginning and one for the inside
    of a word, so that each word made of known letters can be spelt. They count towards the size.
    """
    from tokenizers import models, trainers

    if style not in SPECIALS:
        raise UserError(f"style '{style}' is not one of {', '.join(SPECIALS)}")
    specials = SPECIALS[style]
    tokenizer = _tokenizer(models.WordPiece(unk_token=specials[_UNKNOWN[style]]))
    letters = _letters(tokenizer, set(chain.from_iterable(map(set, lines()))))
    if not letters:
        raise UserError("there is no text to make a vocabulary from")
    given = [*specials, *letters]
    if len(given) > size:
        raise UserError(
            f"a vocabulary of {size} pieces has no room for the letters of the text; at least {len(given)} are needed"
        )
    # Equally frequent pairs are merged in the order of their numbers. Left alone the library numbers the letters in
    # the order of a hash table; given as special tokens they have fixed numbers, and so has everything made of them.
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=min_frequency, special_tokens=given, limit_alphabet=size, show_progress=False
    )
    tokenizer.train_from_iterator(lines(), trainer)
    learnt = tokenizer.get_vocab()
    if len(learnt) < size and not up_to:
        raise UserError(
            f"the text supports a vocabulary of {len(learnt)} pieces only, not {size}; give more text or ask for fewer"
        )
    return _finished(learnt, style)


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


def _tokenizer(model) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _finished(vocabulary: dict[str, int], style: str) -> Tokenizer:
    from tokenizers import models, processors

    specials = SPECIALS[style]
    tokenizer = _tokenizer(models.WordPiece(vocabulary, unk_token=specials[_UNKNOWN[style]]))
    single, pair = _FRAMES[style]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(token, vocabulary[token]) for token in specials if token in pair],
    )
    tokenizer.add_special_tokens(list(specials))
    return tokenizer


def mask_token(tokenizer: Tokenizer) -> int:
    """The number of the mask token."""
    for name in ("[MASK]", "<mask>"):
        number = tokenizer.token_to_id(name)
        if number is not None:
            return number
    raise UserError("the tokenizer has neither [MASK] nor <mask>; masked language modelling needs one")
