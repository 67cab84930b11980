"""Task heads on top of an encoder's last layer.

All take hidden states of batch x length x neurons, in any precision. The small ones always compute in the precision of
their own weights; the parser's large products obey autocast. None makes shapes that depend on the data, so that a
training step can be recorded once and replayed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crossalign.engine.shape import ROBERTAS

# Standard deviation of the initialiser of BERT and XLM-R, and the width of the narrowest of them.
STD, WIDTH = 0.02, 768


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer as BERT initialises its own; in narrower models such that its outputs vary as much as BERT's.

    Otherwise the gradient that reaches a small encoder is so weak that hundreds of steps pass before it learns.
    """
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=STD * max(1.0, (WIDTH / inputs) ** 0.5))
    nn.init.zeros_(layer.bias)
    return layer


def full_precision(tensor: Tensor) -> torch.autocast:
    """Switches autocast off: scores in bf16 would tie where the model does prefer one answer."""
    return torch.autocast(tensor.device.type, enabled=False)


def pick(hidden_states: Tensor, positions: Tensor) -> Tensor:
    """The vectors at `positions` (batch x words) of each row."""
    batch, length, size = hidden_states.shape
    rows = torch.arange(batch, device=positions.device).unsqueeze(1) * length
    flat = hidden_states.reshape(batch * length, size).index_select(0, (rows + positions).reshape(-1))
    return flat.view(batch, positions.shape[1], size)


class TaggingHead(nn.Module):
    """Dropout and one linear layer on the first sub-word of each word."""

    def __init__(self, hidden: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.classifier = linear(hidden, labels)

    def forward(self, hidden_states: Tensor, word_starts: Tensor) -> Tensor:
        """Scores, batch x words x labels."""
        with full_precision(hidden_states):
            words = pick(hidden_states, word_starts).to(self.classifier.weight.dtype)
            return self.classifier(self.dropout(words))


class SequenceHead(nn.Module):
    """A classifier of whole sequences on the first or the last token: a tanh layer, dropout, one linear layer.

    The last one is for decoders, as in the library: no other token has seen the whole sequence. BERT brings the tanh
    layer (`pooler`) with it, pretrained; others train it from scratch. See `fit_family`.
    """

    def __init__(self, hidden: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.pooler = linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.classifier = linear(hidden, labels)
        self.early_dropout = False

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Scores, batch x labels; with a mask of the last token."""
        with full_precision(hidden_states):
            if attention_mask is None:
                token = hidden_states[:, 0]
            else:
                token = pick(hidden_states, attention_mask.sum(1, keepdim=True).clamp(min=1) - 1)[:, 0]
            token = token.to(self.pooler.weight.dtype)
            token = self.dropout(token) if self.early_dropout else token
            return self.classifier(self.dropout(torch.tanh(self.pooler(token))))


def fit_family(head: nn.Module, family: str, pretrained: dict[str, Tensor]) -> None:
    """Let a classifier of sequences begin as the library's for models of this family.

    RoBERTa's is new and drops neurons before its tanh layer too; BERT's has the `pretrained` tanh layer.
    """
    if not isinstance(head, SequenceHead):
        return
    if family in ROBERTAS:
        head.early_dropout = True
    elif pretrained:
        head.pooler.load_state_dict({name.rpartition(".")[2]: value for name, value in pretrained.items()})


class SpanHead(nn.Module):
    """One linear layer that scores every token as the beginning and as the end of the answer."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.classifier = linear(hidden, 2)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor) -> Tensor:
        """Scores, batch x 2 x length. Padding never competes, so that its amount does not matter."""
        with full_precision(hidden_states):
            scores = self.classifier(hidden_states.to(self.classifier.weight.dtype)).float().transpose(1, 2)
        return scores.masked_fill(attention_mask.unsqueeze(1) == 0, LOW)


# As good as minus infinity for a softmax, but a masked target gives a large loss instead of an infinite one.
LOW = -1e9


class Perceptron(nn.Module):
    """One linear layer, leaky ReLU, and a dropout that drops the same neurons at all positions of a sentence."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.dropout = dropout
        nn.init.orthogonal_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors of batch x positions x inputs become batch x positions x outputs."""
        result = F.leaky_relu(self.linear(vectors), 0.1)
        if self.training and self.dropout > 0:
            result = result * F.dropout(torch.ones_like(result[:, :1]), self.dropout)
        return result


class BiaffineHead(nn.Module):
    """Deep biaffine parser of the authors' sibling code: arc and label scores between words; [CLS] is the root.

    The perceptrons have 500 and 200 neurons, or as many as the encoder where that is narrower.
    """

    def __init__(self, hidden: int, labels: int, dropout: float) -> None:
        super().__init__()
        arc, label = min(500, hidden), min(200, hidden)
        self.arc_head = Perceptron(hidden, arc, dropout)
        self.arc_dependent = Perceptron(hidden, arc, dropout)
        self.label_head = Perceptron(hidden, label, dropout)
        self.label_dependent = Perceptron(hidden, label, dropout)
        # The last row is the bias on the dependent's side: how likely a word is to be anybody's head.
        self.arc = nn.Parameter(torch.zeros(arc + 1, arc))
        # Dependent's neuron x label x head's neuron, with a bias on both sides.
        self.label = nn.Parameter(torch.zeros(label + 1, labels, label + 1))

    def forward(self, hidden_states: Tensor, word_starts: Tensor, word_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Arc scores (batch x words x 1 + words), and the vectors from which labels are scored."""
        root = torch.zeros_like(word_starts[:, :1])
        nodes = pick(hidden_states, torch.cat([root, word_starts], dim=1)).to(self.arc.dtype)
        words = nodes[:, 1:]
        query = self.arc_dependent(words) @ self.arc[:-1] + self.arc[-1]
        arcs = (query @ self.arc_head(nodes).transpose(1, 2)).float()
        padding = F.pad(word_mask == 0, (1, 0), value=False)
        arcs = arcs.masked_fill(padding.unsqueeze(1), LOW)
        return arcs, with_one(self.label_dependent(words)), with_one(self.label_head(nodes))

    def labels_at(self, dependents: Tensor, nodes: Tensor, heads: Tensor) -> Tensor:
        """Label scores (batch x words x labels) for one given head per word."""
        query, chosen = self._query(dependents), pick(nodes, heads)
        return (query @ chosen.unsqueeze(-1)).squeeze(-1).float()

    def labels_everywhere(self, dependents: Tensor, nodes: Tensor) -> Tensor:
        """Label scores for every word and every head: batch x words x 1 + words x labels."""
        return torch.einsum("bdlk,bhk->bdhl", self._query(dependents), nodes).float()

    def _query(self, dependents: Tensor) -> Tensor:
        """What the vectors of heads are multiplied with: batch x words x labels x neurons."""
        # The weights of labels are filled up as the vectors are.
        more = dependents.shape[-1] - self.label.shape[-1]
        label = F.pad(self.label, (0, more, 0, 0, 0, more)) if more else self.label
        return (dependents @ label.flatten(1)).unflatten(-1, label.shape[1:])


def with_one(vectors: Tensor) -> Tensor:
    """Vectors with a constant neuron, for a bias; on CUDA with zeros behind it, as products of odd sizes are slow."""
    vectors = F.pad(vectors, (0, 1), value=1.0)
    return F.pad(vectors, (0, -vectors.shape[-1] % 8)) if vectors.is_cuda else vectors


def mean_cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean over the targets that are not -100; zero, not NaN, when there is none.

    Classes are the last dimension of `scores`.
    """
    total = F.cross_entropy(scores.reshape(-1, scores.shape[-1]).float(), targets.reshape(-1), reduction="sum")
    return total / (targets != -100).sum().clamp(min=1)


# A forbidden step costs more than any path earns, but two paths that must take one can still be compared.
FORBIDDEN = -1e4


def iob_constraints(labels: Sequence[str]) -> tuple[Tensor, Tensor]:
    """IOB2: labels that may not come first (labels), and pairs that may not follow each other (labels x labels).

    I-X follows B-X or I-X only. Where training knows no B-X, entities of that kind begin with I-X.
    """
    known = set(labels)
    inside = [label[2:] if label.startswith("I-") and f"B-{label[2:]}" in known else None for label in labels]
    steps = [[kind is not None and before not in (f"B-{kind}", f"I-{kind}") for kind in inside] for before in labels]
    return torch.tensor([kind is not None for kind in inside]), torch.tensor(steps)


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
    def viterbi(
        self, emissions: Tensor, mask: Tensor, constraints: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The best path of each row (0 on padding) and its score, which includes what `constraints` cost it."""
        mask = mask.bool()
        start, steps = self.start, self.transitions
        if constraints is not None:
            start = start + constraints[0].to(start.device) * FORBIDDEN
            steps = steps + constraints[1].to(steps.device) * FORBIDDEN
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
