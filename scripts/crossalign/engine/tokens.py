"""From words and texts to the numbers of a model's vocabulary, and the special tokens that stand around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Encodings are large objects; taken a few thousand at a time they never fill the memory.
CHUNK = 4096
# Words that are tokenised as one text.
TEXT = 128


# What tokenizers call the tokens that begin, end and fill up a text, and the token of unknown words.
_NAMES = {
    "cls": ("[CLS]", "<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>"),
    "sep": ("[SEP]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"),
    "pad": ("[PAD]", "<pad>", "<|pad|>"),
    "unk": ("[UNK]", "<unk>", "<|unk|>"),
    "mask": ("[MASK]", "<mask>", "<|mask|>"),
}


def named_token(tokenizer: Tokenizer, role: str) -> int | None:
    """The number of the token that begins (`cls`) or ends (`sep`) a text, of another role; None: there is none."""
    numbers = [number for number in map(tokenizer.token_to_id, _NAMES[role]) if number is not None]
    # Gemma's vocabulary has <s> and </s> too, as tags of HTML: a token that is marked as special goes first.
    added = tokenizer.get_added_tokens_decoder()
    return min(numbers, key=lambda number: not (number in added and added[number].special), default=None)


@dataclass(frozen=True)
class Frame:
    """What stands before, between and after the tokens of one or two texts, as the tokenizer itself puts it.

    BERT: [CLS] a [SEP] b [SEP] with token types. XLM-R: <s> a </s> </s> b </s> without. XGLM: </s> a. GPT-2: nothing.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    typed: bool = False

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Frame:
        """What the tokenizer puts around one letter and around two."""
        size = len(tokenizer.encode("a", add_special_tokens=False).ids)
        single, pair = tokenizer.encode("a"), tokenizer.encode("a", "a")
        # Places of the words in one text and in two.
        alone, both = ([i for i, special in enumerate(e.special_tokens_mask) if not special] for e in (single, pair))
        if not size or len(alone) != size or len(both) != 2 * size:
            raise UserError("the tokenizer gives nothing for the letter a, or something else each time; it is damaged")
        before, after = single.ids[: alone[0]], single.ids[alone[-1] + 1 :]
        between = pair.ids[both[size - 1] + 1 : both[size]]
        return cls(tuple(before), tuple(between), tuple(after), 1 in pair.type_ids)

    @property
    def size(self) -> int:
        """How many tokens the frame of one text has."""
        return len(self.before) + len(self.after)

    def check(self, max_length: int, positions: int) -> None:
        """Refuse a length that the model has no positions for, or that leaves no room for words."""
        if max_length > positions:
            raise UserError(f"--max-length {max_length}: the model has positions for {positions} tokens only")
        if max_length <= self.size:
            raise UserError(f"--max-length {max_length} leaves no room for words beside {self.size} special tokens")


@dataclass(frozen=True)
class Specials:
    """Numbers of the special tokens, and how tasks frame texts: as the tokenizer does, with two additions.

    A token always stands first, where parsers have the root and QA has no answer, and one always stands between two
    texts, as in GPT's fine-tuning: where the tokenizer has none, those that begin and end a text.
    """

    cls: int
    sep: int
    pad: int
    unk: int
    frame: Frame

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Specials:
        """Found by name and by the tokenizer's own frame."""
        frame = Frame.of(tokenizer)
        end = named_token(tokenizer, "sep")
        end = next(iter((*frame.after[-1:], *frame.before[:1])), None) if end is None else end
        if end is None:
            raise UserError(f"the tokenizer has no token that ends a text; one of {', '.join(_NAMES['sep'])} is needed")
        begin = named_token(tokenizer, "cls")
        begin = next(iter(frame.before), end) if begin is None else begin
        # A model without padding never sees it: padded cells are masked.
        pad = named_token(tokenizer, "pad")
        pad = end if pad is None else pad
        unknown = named_token(tokenizer, "unk")
        frame = replace(frame, before=frame.before or (begin,), between=frame.between or (end,))
        return cls(begin, end, pad, pad if unknown is None else unknown, frame)

    def room(self, max_length: int, texts: int = 1) -> int:
        """How many tokens of one or two texts fit beside the special tokens; at least one of each."""
        rest = max_length - self.frame.size - (len(self.frame.between) if texts == 2 else 0)
        if rest < texts:
            raise UserError(f"a maximum length of {max_length} tokens leaves no room for words beside special tokens")
        return rest

    def single(self, ids: Sequence[int]) -> list[int]:
        """One text with its special tokens."""
        return [*self.frame.before, *ids, *self.frame.after]

    def second_at(self, first: Sequence[int]) -> int:
        """The place of a second text's first token."""
        return len(self.frame.before) + len(first) + len(self.frame.between)

    def pair(self, first: Sequence[int], second: Sequence[int]) -> dict[str, list[int]]:
        """Two texts with their special tokens, and token types where the model knows them."""
        frame, turn = self.frame, self.second_at(first)
        example = {"input_ids": [*frame.before, *first, *frame.between, *second, *frame.after]}
        if frame.typed:
            example["token_type_ids"] = [0] * turn + [1] * (len(second) + len(frame.after))
        return example


def needs_space(tokenizer: Tokenizer) -> bool:
    """Whether a word alone lacks the mark of the space before it, as in byte-level tokenizers and in Gemma's."""

    def form(text: str) -> str:
        if tokenizer.normalizer is not None:
            text = tokenizer.normalizer.normalize_str(text)
        if tokenizer.pre_tokenizer is not None:
            text = "".join(piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
        return text

    return form("a") == "a" != form(" a")


def word_pieces(
    tokenizer: Tokenizer, sentences: Iterable[Sequence[str]], most: int
) -> Callable[[Sequence[str]], list[list[int]]]:
    """A function from the words of such a sentence to the sub-words of each, at most `most` of a word.

    Each form is tokenised once: for words split beforehand the result does not depend on the neighbours, except that a
    space stands before every word but the first. A form of which nothing remains (a lone control character, say) is an
    unknown word.
    """
    unknown, space = [Specials.of(tokenizer).unk], " " if needs_space(tokenizer) else ""
    words = dict.fromkeys(
        f"{space}{word}" if place else word for words in sentences for place, word in enumerate(words)
    )
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
    return lambda words: [table[f"{space}{word}" if place else word] for place, word in enumerate(words)]


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
