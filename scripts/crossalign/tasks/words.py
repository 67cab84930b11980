"""POS, NER and parsing for models that read whole words instead of sub-words; NER is decoded by a CRF.

A word's state stands behind that of the root, so that the heads of the sub-word models serve here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossalign.engine.batches import IGNORE
from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Example, Records, Task
from crossalign.tasks.ner import NerTask
from crossalign.tasks.parsing import ParsingTask
from crossalign.tasks.pos import PosTask

if TYPE_CHECKING:
    from torch import Tensor, nn

    from crossalign.engine.bilstm import Lexicon
    from crossalign.tasks.base import Batch


class WholeWords(Task):
    """Examples of whole words: nothing is too long, so nothing is cut."""

    words_key: str
    tags_key: str

    def examples(
        self, records: Records, tokenizer: Lexicon, max_length: int = 0, training: bool = False
    ) -> list[Example]:
        """One example per record; the lexicon takes the tokenizer's place."""
        examples = []
        for index, record in enumerate(records):
            ids = tokenizer.numbers(record[self.words_key])
            labels = [self.numbers.get(tag, IGNORE) for tag in record[self.tags_key]]
            example = {"input_ids": ids, "word_starts": list(range(1, len(ids) + 1)), "labels": labels}
            if "heads" in self.fields:
                example["heads"] = record["heads"]
            examples.append(example | {"record": index, "cut": 0})
        return examples

    def words(self, records: Records) -> list[list[str]]:
        """The words of each record."""
        return [record[self.words_key] for record in records]


class WordPos(WholeWords, PosTask):
    """POS tagging of whole words."""


class WordParsing(WholeWords, ParsingTask):
    """Parsing of whole words."""

    words_key, tags_key = "words", "relations"


class WordNer(WholeWords, NerTask):
    """NER of whole words with a CRF."""

    def make_head(self, hidden: int, dropout: float) -> nn.Module:
        from crossalign.engine.heads import CrfHead

        return CrfHead(hidden, self.labels, dropout)

    def loss(self, head: nn.Module, states: Tensor, batch: Batch) -> Tensor:
        return head.loss(states, batch["word_starts"], batch["labels"], batch["word_mask"])

    def predict(self, head: nn.Module, states: Tensor, batch: Batch) -> Batch:
        return {"labels": head.best(states, batch["word_starts"], batch["word_mask"])}


_CLASSES = {"parsing": WordParsing, "pos": WordPos, "ner": WordNer}


def get_word_task(name: str, labels: Sequence[str] | None = None) -> WholeWords:
    """The task `name` for whole words."""
    if name not in _CLASSES:
        raise UserError(f"task '{name}': a BiLSTM does {', '.join(_CLASSES)} only")
    return _CLASSES[name](labels)
