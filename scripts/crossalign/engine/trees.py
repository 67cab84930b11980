"""Maximum spanning trees with a single root, for dependency parsing: Chu-Liu/Edmonds on dense matrices.

Shifting all arcs from the root by the same amount leaves the order among the trees with one child of the root as it is.
So whenever the best tree after some shift has one such child, it is the tree sought; and a shift by more than any two
trees can differ leaves the root with a single child.
"""

from collections.abc import Sequence
from itertools import groupby

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
    lengths = list(map(len, sentences))
    for count, group in groupby(sorted(range(len(sentences)), key=lengths.__getitem__), lengths.__getitem__):
        members = list(group)
        some = max(1, _TOGETHER // max(1, count * (count + 1)))
        for start in range(0, len(members), some):
            part = members[start : start + some]
            stack = np.array([sentences[number] for number in part], dtype=np.float64)
            decoded = _decode(stack) if count > 1 else np.zeros((len(part), count), dtype=np.int64)
            for number, heads in zip(part, decoded, strict=True):
                found[number] = heads
    return found


def _decode(scores: np.ndarray) -> np.ndarray:
    """Heads of sentences of one length: sentences x words; `scores` is used up."""
    count, good = scores.shape[1], np.isfinite(scores)
    if not good.all():
        low, high = (scores[good].min(), scores[good].max()) if good.any() else (0.0, 0.0)
        scores = np.where(good, scores, low - (high - low + 1.0) * count)
    own = np.arange(count)
    scores[:, own, own + 1] = -np.inf
    # Exactly one word, the keenest, likes the root best after this shift, and most sentences end here: if everyone's
    # favourite heads are a tree, no tree is heavier.
    keen = scores[:, :, 0] - scores[:, :, 1:].max(axis=2)
    scores[:, :, 0] -= np.partition(keen, count - 2, axis=1)[:, -2:].mean(axis=1, keepdims=True)
    heads = scores.argmax(axis=2)
    done = (np.count_nonzero(heads == 0, axis=1) == 1) & are_trees(heads)
    for number in np.flatnonzero(~done):
        heads[number] = _heaviest(scores[number])
        if np.count_nonzero(heads[number] == 0) > 1:
            # More than any two trees differ. It comes last because it makes one cycle after another of the sentence.
            used = scores[number][np.isfinite(scores[number])]
            scores[number, :, 0] -= (used.max() - used.min()) * count + 1.0
            heads[number] = _heaviest(scores[number])
    return heads


def are_trees(heads: np.ndarray) -> np.ndarray:
    """Whether following the heads leads from every word to the root, for each row."""
    up = np.pad(heads, ((0, 0), (1, 0)))
    for _ in range(up.shape[1].bit_length()):
        up = np.take_along_axis(up, up, axis=1)
    return ~up.any(axis=1)


def _heaviest(scores: np.ndarray) -> np.ndarray:
    """The heaviest tree, whatever the number of children of the root: follow best heads, contract what turns round.

    A node is the root (0), a word or a cycle. Of each are known: the weights of all words as its head (`gain`), the
    word inside it that would get that head (`entry`), the chosen head (`best`, a word), and its words.
    """
    count = len(scores)
    gain: list[np.ndarray] = [scores[0], *scores]
    entry: list[np.ndarray] = [np.full(count + 1, node) for node in range(count + 1)]
    best: list[int] = [0, *scores.argmax(axis=1).tolist()]
    words: list[list[int]] = [[node] for node in range(count + 1)]
    parts: dict[int, list[int]] = {}
    top = list(range(count + 1))  # the outermost node that holds each word
    settled = {0}  # nodes whose way leads to the root
    for start in range(1, count + 1):
        node, path = top[start], []
        while node not in settled:
            path.append(node)
            node = top[best[node]]
            if node in path:
                cycle, path = path[path.index(node) :], path[: path.index(node)]
                # A head from outside costs the arc of the cycle into the word that gets it.
                gains = np.stack([gain[part] - gain[part][best[part]] for part in cycle])
                chosen = gains.argmax(axis=0)
                node, columns = len(best), np.arange(count + 1)
                words.append([word for part in cycle for word in words[part]])
                gain.append(gains[chosen, columns])
                gain[node][words[node]] = -np.inf
                entry.append(np.stack([entry[part] for part in cycle])[chosen, columns])
                best.append(int(gain[node].argmax()))
                parts[node] = cycle
                for word in words[node]:
                    top[word] = node
        settled.update(path)
    # Open the cycles from the outside in: each loses the arc into the word at which it was entered.
    holder = {part: node for node, inside in parts.items() for part in inside}
    heads, todo = np.zeros(count, dtype=np.int64), list(set(top[1:]))
    while todo:
        node = todo.pop()
        inner = int(entry[node][best[node]])
        heads[inner - 1] = best[node]
        # All nodes between this one and the word are entered there; their other parts keep their arcs.
        while inner != node:
            todo += [part for part in parts[holder[inner]] if part != inner]
            inner = holder[inner]
    return heads
