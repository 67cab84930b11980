"""Encoder of words and letters: each word from a table and from its spelling, then bidirectional LSTMs (`talk`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from crossalign.engine.settings import Sizes

# Number 0 of the words and number 1 of the characters are the unknown ones; character 0 is padding.
UNKNOWN_WORD, PADDING, UNKNOWN_CHARACTER = 0, 0, 1
# A word or character that was seen once stands for those never seen.
OFTEN = 2
# Longer forms are addresses and the like, which their beginning tells.
LONGEST = 64


@dataclass(frozen=True)
class Words:
    """Words of a batch by distinct forms: `grid` (batch x words) points at the forms, which the rest describes.

    `counts` (words per row) and `lengths` (characters per form) stay on the CPU.
    """

    grid: Tensor
    counts: Tensor
    words: Tensor
    characters: Tensor
    lengths: Tensor


class BiLstm(nn.Module):
    """Hidden states of a root and of the words: batch x 1 + words x 2 hidden.

    Layers after the first add to what they are given, as in UDPipe 2. Dropout is that of Dozat and Manning: one mask
    per sentence for the input of every layer, and whole words become the unknown one, so that their spelling alone must
    do.
    """

    def __init__(self, sizes: Sizes, words: int, characters: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.word = nn.Embedding(words, sizes.words)
        self.character = nn.Embedding(characters, sizes.characters, padding_idx=PADDING)
        with torch.no_grad():
            nn.init.normal_(self.word.weight, std=0.1)
            # Never learnt unless rare characters occur, and then nothing is the best guess.
            self.character.weight[UNKNOWN_CHARACTER] = 0
        self.speller = _lstm(sizes.characters, sizes.characters)
        inputs = sizes.words + 2 * sizes.characters
        self.root = nn.Parameter(torch.zeros(inputs))
        widths = [inputs] + [2 * sizes.hidden] * (sizes.layers - 1)
        self.layers = nn.ModuleList(_lstm(width, sizes.hidden) for width in widths)

    @property
    def width(self) -> int:
        """Neurons of the hidden states."""
        return 2 * self.sizes.hidden

    def forward(self, words: Words) -> Tensor:
        """The states of a batch; those on padding are 0."""
        vectors = torch.cat([self._known(words), self._spelt(words)[words.grid]], dim=-1)
        states = torch.cat([self.root.expand(len(vectors), 1, -1), vectors], dim=1)
        lengths = words.counts + 1
        for number, layer in enumerate(self.layers):
            packed = pack_padded_sequence(self._locked(states), lengths, batch_first=True, enforce_sorted=False)
            further, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=states.shape[1])
            # Without the sum, three layers learn next to nothing from a small set.
            states = states + further if number else further
        return states

    def _known(self, words: Words) -> Tensor:
        numbers = words.words[words.grid]
        if self.training and self.sizes.dropout > 0:
            dropped = torch.rand(numbers.shape, device=numbers.device) < self.sizes.dropout
            numbers = numbers.masked_fill(dropped, UNKNOWN_WORD)
        return self.word(numbers)

    def _spelt(self, words: Words) -> Tensor:
        """For each distinct form the last states of both directions over its characters."""
        letters = self._locked(self.character(words.characters))
        packed = pack_padded_sequence(letters, words.lengths, batch_first=True, enforce_sorted=False)
        last = self.speller(packed)[1][0]
        return torch.cat([last[0], last[1]], dim=-1)

    def _locked(self, states: Tensor) -> Tensor:
        if not self.training or self.sizes.dropout == 0:
            return states
        return states * F.dropout(torch.ones_like(states[:, :1]), self.sizes.dropout)


def _lstm(inputs: int, hidden: int) -> nn.LSTM:
    """One layer in both directions; it remembers at first (the bias of the forget gate is 1)."""
    lstm = nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name, parameter in lstm.named_parameters():
            if name.startswith("bias"):
                parameter.zero_()
            elif name.startswith("weight_hh"):
                for gate in parameter.split(hidden):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(parameter)
            if name.startswith("bias_hh"):
                parameter[hidden : 2 * hidden] = 1
    return lstm


class Lexicon:
    """Words in small letters, characters as written.

    Forms get numbers as they come, so that a batch names each by one number and is spelt once per distinct form.
    """

    def __init__(self, words: Sequence[str], characters: Sequence[str]) -> None:
        self.words, self.characters = list(words), list(characters)
        self._words = {word: number for number, word in enumerate(words, UNKNOWN_WORD + 1)}
        self._characters = {character: number for number, character in enumerate(characters, UNKNOWN_CHARACTER + 1)}
        self._forms: dict[str, int] = {}
        self._numbers: list[int] = []
        self._letters: list[list[int]] = []

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> Lexicon:
        """What can be learnt from the training sentences."""
        forms = Counter(str(form) for sentence in sentences for form in sentence)
        words, characters = Counter[str](), Counter[str]()
        for form, count in forms.items():
            words[form.lower()] += count
            for character in form:
                characters[character] += count
        return cls(*(sorted(item for item, count in table.items() if count >= OFTEN) for table in (words, characters)))

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of the tables of words and of characters."""
        return len(self.words) + 1, len(self.characters) + 2

    @property
    def forms(self) -> list[str]:
        """All forms that have a number so far, in its order."""
        return list(self._forms)

    def numbers(self, forms: Iterable[str]) -> list[int]:
        """The numbers of some forms."""
        return [self._number(str(form)) for form in forms]

    def _number(self, form: str) -> int:
        if form not in self._forms:
            self._forms[form] = len(self._forms)
            self._numbers.append(self._words.get(form.lower(), UNKNOWN_WORD))
            letters = [self._characters.get(character, UNKNOWN_CHARACTER) for character in form[:LONGEST]]
            self._letters.append(letters or [UNKNOWN_CHARACTER])
        return self._forms[form]

    def spell(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the forms with these numbers: the words, their characters (padded) and how many."""
        letters = [self._letters[number] for number in numbers]
        lengths = np.array([len(part) for part in letters], dtype=np.int64)
        characters = np.full((len(letters), int(lengths.max())), PADDING, dtype=np.int64)
        for row, part in zip(characters, letters, strict=True):
            row[: len(part)] = part
        return np.array([self._numbers[number] for number in numbers], dtype=np.int64), characters, lengths
