"""The abstract sentence: a dependency tree over meanings, which every language renders in its own way."""

from dataclasses import dataclass

from crossalign.world.names import Name


@dataclass(slots=True, eq=False)
class Node:
    """A word of the abstract tree. Articles, cases and auxiliaries are features; languages make words of them."""

    concept: str
    pos: str
    rel: str
    kids: "list[Node]"
    group: str = ""
    plural: bool = False
    definite: str = ""
    tense: str = ""
    modal: str = ""
    negated: bool = False
    passive: bool = False
    name: Name | None = None
    # The adposition of an oblique, or the conjunction of a clause or conjunct.
    link: str = ""
    front: bool = False
    # In a relative clause: which role the described noun plays in it.
    gap: str = ""
    question: bool = False
    digits: str = ""
    id: int = -1


@dataclass(slots=True)
class Sentence:
    """A tree and its final mark."""

    root: Node
    mark: str = "."


def number_nodes(root: Node) -> Node:
    """Give the nodes their numbers, parents before children: the identity that translations share."""
    stack, count = [root], 0
    while stack:
        node = stack.pop()
        node.id, count = count, count + 1
        stack.extend(reversed(node.kids))
    return root
