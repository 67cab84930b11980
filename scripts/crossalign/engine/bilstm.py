"""Encoder of words and letters: each word from a table and from its spelling, then bidirectional LSTMs (`talk`)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from crossalign.engine.hyperparameters import Sizes
from crossalign.engine.lexicon import PADDING, UNKNOWN_CHARACTER, UNKNOWN_WORD


@dataclass(frozen=True)
class Words:
    """Words of a batch by distinct forms: `grid` (batch x words) points at the forms, which the rest describes.

    `counts` (words per row) and `lengths` (characters per form) stay on the CPU.
    """

    grid: Tensor
    counts: Tensor
    words: Tensor
    given: Tensor
    characters: Tensor
    lengths: Tensor


class BiLstm(nn.Module):
    """Hidden states of a root and of the words: batch x 1 + words x 2 hidden.

    Layers after the first add to what they are given, as in UDPipe 2. Dropout is that of Dozat and Manning: one mask
    per sentence for the input of every layer, and whole words become the unknown one, so that their spelling alone must
    do. Vectors given from elsewhere stay as they are; a learnt projection of them is added to the trained ones.
    """

    def __init__(self, sizes: Sizes, words: int, characters: int, vectors: Tensor | None = None) -> None:
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
        self.projection = None
        if vectors is not None:
            # Row 0 belongs to the forms that have none.
            self.register_buffer("vectors", F.pad(vectors.float(), (0, 0, 1, 0)))
            self.projection = nn.Linear(vectors.shape[1], sizes.words, bias=False)

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
        vectors = self.word(numbers)
        if self.projection is not None:
            vectors = vectors + self.projection(self.vectors[words.given])[words.grid]
        return vectors

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
