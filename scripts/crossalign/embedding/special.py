"""The special tokens that a model's tokenizer puts around a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crossalign.engine.tokens import Specials
from crossalign.runtime.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Frame:
    """What stands before and after the tokens of a text: [CLS] and [SEP], <s> and </s>, or XGLM's single </s>."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    has_cls: bool

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Frame:
        """As the tokenizer itself frames a text; by the names of its special tokens if it does not say."""
        encoding = tokenizer.encode("a", add_special_tokens=True)
        words = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        before, after = encoding.ids[: words[0]], encoding.ids[words[-1] + 1 :]
        if not before and not after:
            specials = Specials.of(tokenizer)
            before, after = [specials.cls], [specials.sep]
        starts = {tokenizer.token_to_id(name) for name in ("[CLS]", "<s>")} - {None}
        return cls(tuple(before), tuple(after), bool(before) and before[0] in starts)

    @property
    def size(self) -> int:
        """How many tokens the frame has."""
        return len(self.before) + len(self.after)

    def check(self, max_length: int, positions: int) -> None:
        """Refuse a length that the model has no positions for, or that leaves no room for words."""
        if max_length > positions:
            raise UserError(f"--max-length {max_length}: the model has positions for {positions} tokens only")
        if max_length <= self.size:
            raise UserError(f"--max-length {max_length} leaves no room for words beside {self.size} special tokens")
