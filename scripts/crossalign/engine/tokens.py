"""From words and texts to the numbers of a model's vocabulary, BERT's way and XLM-R's way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Encodings are large objects; taken a few thousand at a time they never fill the memory.
CHUNK = 4096
# Words that are tokenised as one text.
TEXT = 128


@dataclass(frozen=True)
class Specials:
    """Numbers of the special tokens, and how two texts are joined.

    BERT: [CLS] a [SEP] b [SEP] with token types. XLM-R: <s> a </s> </s> b </s> without.
    """

    cls: int
    sep: int
    pad: int
    unk: int
    gap: int
    typed: bool

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Specials:
        """Found by name in the tokenizer."""
        bert = tokenizer.token_to_id("[CLS]") is not None
        names = ("[CLS]", "[SEP]", "[PAD]", "[UNK]") if bert else ("<s>", "</s>", "<pad>", "<unk>")
        numbers = [tokenizer.token_to_id(name) for name in names]
        if None in numbers:
            missing = ", ".join(name for name, number in zip(names, numbers, strict=True) if number is None)
            raise UserError(
                f"the tokenizer lacks {missing}; it must have [CLS] [SEP] [PAD] [UNK] or <s> </s> <pad> <unk>"
            )
        return cls(*numbers, gap=1 if bert else 2, typed=bert)

    def room(self, max_length: int, texts: int = 1) -> int:
        """How many tokens of one or two texts fit beside the special tokens; at least one of each."""
        rest = max_length - 2 - (self.gap if texts == 2 else 0)
        if rest < texts:
            raise UserError(f"a maximum length of {max_length} tokens leaves no room for words beside special tokens")
        return rest

    def single(self, ids: Sequence[int]) -> list[int]:
        """One text with its special tokens."""
        return [self.cls, *ids, self.sep]

    def pair(self, first: Sequence[int], second: Sequence[int]) -> dict[str, list[int]]:
        """Two texts with their special tokens, and token types where the model knows them."""
        example = {"input_ids": [self.cls, *first, *[self.sep] * self.gap, *second, self.sep]}
        if self.typed:
            example["token_type_ids"] = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        return example


def word_pieces(tokenizer: Tokenizer, sentences: Iterable[Sequence[str]], most: int) -> dict[str, list[int]]:
    """The sub-words of every word that occurs, at most `most` of them.

    Each form is tokenised once: for words split beforehand the result does not depend on the neighbours. A form of
    which nothing remains (a lone control character, say) is an unknown word.
    """
    unknown = [Specials.of(tokenizer).unk]
    words = dict.fromkeys(chain.from_iterable(sentences))
    table = {}
    for part in _chunks(words):
        # Some hundred words as one text: an encoding of its own for each word would take twice as long.
        texts = [part[start : start + TEXT] for start in range(0, len(part), TEXT)]
        encodings = tokenizer.encode_batch(texts, is_pretokenized=True, add_special_tokens=False)
        for text, encoding in zip(texts, encodings, strict=True):
            pieces: list[list[int]] = [[] for _ in text]
            for number, word in zip(encoding.ids, encoding.word_ids, strict=True):
                pieces[word].append(number)
            table.update((word, piece[:most] or unknown) for word, piece in zip(text, pieces, strict=True))
    return table


def text_ids(tokenizer: Tokenizer, texts: Iterable[str]) -> dict[str, list[int]]:
    """The token numbers of every distinct text, without special tokens."""
    table = {}
    for part in _chunks(dict.fromkeys(texts)):
        encodings = tokenizer.encode_batch_fast(part, add_special_tokens=False)
        table.update((text, encoding.ids) for text, encoding in zip(part, encodings, strict=True))
    return table


def text_spans(tokenizer: Tokenizer, texts: Iterable[str]) -> dict[str, tuple[list[int], np.ndarray]]:
    """For every distinct text its token numbers and, n x 2, where each token begins and ends in characters."""
    table = {}
    for part in _chunks(dict.fromkeys(texts)):
        for text, encoding in zip(part, tokenizer.encode_batch(part, add_special_tokens=False), strict=True):
            table[text] = (encoding.ids, np.asarray(encoding.offsets, dtype=np.int32).reshape(-1, 2))
    return table


def _chunks(items: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(items)
    while part := list(islice(iterator, CHUNK)):
        yield part
