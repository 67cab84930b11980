"""Linear-chain conditional random field: labels of neighbouring words are chosen together.

Emissions are batch x words x labels; a mask (batch x words) tells the words from the padding, which stands at the end
only. Every row has at least one word. The cost of a path is the sum of its emissions, of its transitions and of what
its first and its last label earn for standing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crossalign.engine.heads import TaggingHead

# A forbidden step costs more than any path earns, but two paths that must take one can still be compared.
FORBIDDEN = -1e4


@dataclass(frozen=True)
class Constraints:
    """Labels that may not come first (labels), and pairs that may not follow each other (labels x labels)."""

    start: Tensor
    steps: Tensor


def iob_constraints(labels: Sequence[str]) -> Constraints:
    """IOB2: I-X follows B-X or I-X only. Where training knows no B-X, entities of that kind begin with I-X."""
    known = set(labels)
    inside = [label[2:] if label.startswith("I-") and f"B-{label[2:]}" in known else None for label in labels]
    steps = [[kind is not None and before not in (f"B-{kind}", f"I-{kind}") for kind in inside] for before in labels]
    return Constraints(torch.tensor([kind is not None for kind in inside]), torch.tensor(steps))


class Crf(nn.Module):
    """Weights of the transitions, from row to column, and of the first and last label."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.empty(labels).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(labels).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(labels, labels).uniform_(-0.1, 0.1))

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Logarithm of the sum over all paths of exp(score), one number per row."""
        mask = mask.bool()
        total = self.start + emissions[:, 0]
        for place in range(1, emissions.shape[1]):
            grown = (total.unsqueeze(2) + self.transitions).logsumexp(dim=1) + emissions[:, place]
            total = torch.where(mask[:, place, None], grown, total)
        return (total + self.end).logsumexp(dim=1)

    def score(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """The score of one path per row. Labels on padding do not matter."""
        mask = mask.bool()
        labels = labels.masked_fill(~mask, 0)
        emitted = emissions.gather(2, labels.unsqueeze(2)).squeeze(2)
        steps = self.transitions[labels[:, :-1], labels[:, 1:]]
        last = labels.gather(1, mask.sum(dim=1, keepdim=True) - 1).squeeze(1)
        inner = emitted.masked_fill(~mask, 0).sum(dim=1) + steps.masked_fill(~mask[:, 1:], 0).sum(dim=1)
        return self.start[labels[:, 0]] + inner + self.end[last]

    def log_likelihood(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Logarithm of the probability of the given labels, one number per row."""
        return self.score(emissions, labels, mask) - self.log_partition(emissions, mask)

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor, constraints: Constraints | None = None) -> tuple[Tensor, Tensor]:
        """The best path of each row (0 on padding) and its score, which includes what `constraints` cost it."""
        mask = mask.bool()
        start, steps = self.start, self.transitions
        if constraints is not None:
            start = start + constraints.start.to(start.device) * FORBIDDEN
            steps = steps + constraints.steps.to(steps.device) * FORBIDDEN
        best, origins = start + emissions[:, 0], []
        for place in range(1, emissions.shape[1]):
            grown, origin = (best.unsqueeze(2) + steps).max(dim=1)
            origins.append(origin)
            best = torch.where(mask[:, place, None], grown + emissions[:, place], best)
        score, label = (best + self.end).max(dim=1)
        path = [label]
        for place in range(emissions.shape[1] - 1, 0, -1):
            # On padding nothing was chosen: the last word's label waits until its word comes.
            earlier = origins[place - 1].gather(1, label.unsqueeze(1)).squeeze(1)
            label = torch.where(mask[:, place], earlier, label)
            path.append(label)
        return torch.stack(path[::-1], dim=1).masked_fill(~mask, 0), score


class CrfHead(TaggingHead):
    """A tagger whose labels a CRF chooses. Training is free; only decoding obeys IOB2."""

    def __init__(self, hidden: int, labels: Sequence[str], dropout: float) -> None:
        super().__init__(hidden, len(labels), dropout)
        self.crf = Crf(len(labels))
        self.constraints = iob_constraints(labels)

    def loss(self, hidden_states: Tensor, word_starts: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Negative log-likelihood per word, so that its size is that of the other taggers' loss."""
        emissions = self(hidden_states, word_starts).float()
        return -self.crf.log_likelihood(emissions, labels, mask).sum() / mask.sum()

    def best(self, hidden_states: Tensor, word_starts: Tensor, mask: Tensor) -> Tensor:
        """The labels of the best path that is sound IOB2."""
        return self.crf.viterbi(self(hidden_states, word_starts).float(), mask, self.constraints)[0]
