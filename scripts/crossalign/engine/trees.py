"""Maximum spanning trees with a single root, for dependency parsing.

Chu-Liu/Edmonds on a dense matrix. Each node takes its best head; where that closes a cycle, the cycle becomes one node
and goes on looking for a head from outside. Shifting all arcs from the root by the same amount leaves the order among
the trees with one child of the root as it is. So whenever the best tree after some shift has one such child, it is the
tree sought; and a shift by more than any two trees can differ leaves the root with a single child.
"""

from collections.abc import Iterator, Sequence

import numpy as np

# Scores of sentences that are looked at together.
_TOGETHER = 1 << 17


def decode_trees(sentences: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Heads of the heaviest tree with one child of the root, of each sentence.

    `weights[d, h]` is the weight of head h for word d + 1, where h = 0 is the root and h = i the i-th word: n rows,
    n + 1 columns. Gives n numbers from 0 to n. Values that are not finite count as far below all others. Sentences of
    one length share the work up to the point where most of them end.
    """
    found: list[np.ndarray] = [np.zeros(0, dtype=np.int64)] * len(sentences)
    for count, members in _by_length(sentences):
        stack = np.array([sentences[number] for number in members], dtype=np.float64)
        for number, heads in zip(members, _decode(stack) if count > 1 else np.zeros((len(stack), count)), strict=True):
            found[number] = heads.astype(np.int64, copy=False)
    return found


def _by_length(sentences: Sequence[np.ndarray]) -> Iterator[tuple[int, list[int]]]:
    """Numbers of sentences of the same length, no more at a time than a cache holds."""
    lengths: dict[int, list[int]] = {}
    for number, weights in enumerate(sentences):
        count = len(weights)
        if weights.shape != (count, count + 1):
            raise ValueError(f"{count} words need {count} x {count + 1} weights, not {weights.shape}")
        lengths.setdefault(count, []).append(number)
    for count, members in lengths.items():
        some = max(1, _TOGETHER // max(1, count * (count + 1)))
        for start in range(0, len(members), some):
            yield count, members[start : start + some]


def _decode(scores: np.ndarray) -> np.ndarray:
    """Heads of sentences of one length: sentences x words; `scores` is used up."""
    count = scores.shape[1]
    if not np.isfinite(scores).all():
        scores = np.stack([_finite(one) for one in scores])
    own = np.arange(count)
    scores[:, own, own + 1] = -np.inf
    # Exactly one word, the keenest, likes the root best after this shift, and most sentences end here: if everyone's
    # favourite heads are a tree, no tree is heavier.
    keen = scores[:, :, 0] - scores[:, :, 1:].max(axis=2)
    scores[:, :, 0] -= np.partition(keen, count - 2, axis=1)[:, -2:].mean(axis=1, keepdims=True)
    heads = scores.argmax(axis=2)
    done = (np.count_nonzero(heads == 0, axis=1) == 1) & are_trees(heads)
    for number in np.flatnonzero(~done):
        heads[number] = _search(scores[number])
    return heads


def _finite(scores: np.ndarray) -> np.ndarray:
    """A copy in which every value can be compared and added."""
    good = np.isfinite(scores)
    low, high = (scores[good].min(), scores[good].max()) if good.any() else (0.0, 0.0)
    return np.where(good, scores, low - (high - low + 1.0) * len(scores))


def _search(scores: np.ndarray) -> np.ndarray:
    heads = _chu_liu_edmonds(scores)
    if np.count_nonzero(heads == 0) > 1:
        # More than any two trees differ. It comes last because it makes one cycle after another of the whole sentence.
        used = scores[np.isfinite(scores)]
        scores[:, 0] -= (used.max() - used.min()) * len(scores) + 1.0
        heads = _chu_liu_edmonds(scores)
    return heads


def are_trees(heads: np.ndarray) -> np.ndarray:
    """Whether following the heads leads from every word to the root, for each row."""
    up = np.pad(heads, ((0, 0), (1, 0)))
    steps = 1
    while steps < up.shape[1]:
        up = np.take_along_axis(up, up, axis=1)
        steps *= 2
    return ~up.any(axis=1)


class _Nodes:
    """0 (the root), the words 1..n and, from n + 1 on, cycles that became one node.

    For each node: the weights of all original words as its head (`gain`), the word inside it that would get that head
    (`entry`), the chosen head (`best`, an original word), the original words in it (`words`), and its parts.
    """

    def __init__(self, scores: np.ndarray) -> None:
        count = len(scores)
        self.gain: list[np.ndarray] = [scores[0], *scores]
        self.entry: list[np.ndarray | int] = list(range(count + 1))
        self.best: list[int] = [0, *scores.argmax(axis=1).tolist()]
        self.words: list[list[int]] = [[node] for node in range(count + 1)]
        self.parts: dict[int, list[int]] = {}
        self.top: list[int] = list(range(count + 1))  # the outermost node that holds each original word

    def contract(self, cycle: list[int]) -> int:
        """Make one node of a cycle: a head from outside costs the arc of the cycle into the word that gets it."""
        first, *others = cycle
        gain, entry = self.gain[first] - self.gain[first][self.best[first]], self.entry[first]
        for node in others:
            other = self.gain[node] - self.gain[node][self.best[node]]
            better = other > gain
            gain, entry = np.where(better, other, gain), np.where(better, self.entry[node], entry)
        new = len(self.best)
        words = [word for node in cycle for word in self.words[node]]
        gain[words] = -np.inf
        for word in words:
            self.top[word] = new
        self.gain.append(gain)
        self.entry.append(entry)
        self.best.append(int(gain.argmax()))
        self.words.append(words)
        self.parts[new] = cycle
        return new

    def expand(self) -> np.ndarray:
        """Open the cycles from the outside in: each loses the arc into the word at which it was entered."""
        holder = {part: node for node, parts in self.parts.items() for part in parts}
        heads = np.zeros(len(self.top) - 1, dtype=np.int64)
        todo = sorted(set(self.top[1:]))
        while todo:
            node = todo.pop()
            head = self.best[node]
            inner = int(self.entry[node][head]) if node in self.parts else node
            heads[inner - 1] = head
            # All nodes between this one and the word are entered there; their other parts keep their arcs.
            while inner != node:
                outer = holder[inner]
                todo.extend(part for part in self.parts[outer] if part != inner)
                inner = outer
        return heads


def _chu_liu_edmonds(scores: np.ndarray) -> np.ndarray:
    """The heaviest tree, whatever the number of children of the root: follow best heads, contract what turns round."""
    nodes = _Nodes(scores)
    settled = {0}  # nodes whose way leads to the root
    for start in range(1, len(scores) + 1):
        node = nodes.top[start]
        path: dict[int, None] = {}
        while node not in settled:
            path[node] = None
            node = nodes.top[nodes.best[node]]
            if node in path:
                way = list(path)
                cycle = way[way.index(node) :]
                for part in cycle:
                    del path[part]
                node = nodes.contract(cycle)
        settled.update(path)
    return nodes.expand()
