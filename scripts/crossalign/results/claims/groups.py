"""What can be said of many members at once: every, most, some, only, how many."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from crossalign.results.claims.evidence import NotRun, Outside
from crossalign.results.claims.predicates import Facts, Finding, Predicate, Truth, in_words, near_enough
from crossalign.results.claims.tolerances import tolerance

# Makes the predicate about what bears a name.
Builder = Callable[..., Predicate]


def every(group: str, builder: Builder, *options: Any, **named: Any) -> Predicate:
    """Something holds of every member of a group; the options are those of the builder."""

    def decide(truths: dict[str, Truth], _: Facts) -> Finding:
        worst = min(truths.values())
        return Finding(worst, "" if worst == Truth.YES else _against(truths, worst))

    return _of_members(f"every one of {group}", group, builder("each", *options, **named), decide)


def most(group: str, builder: Builder, *options: Any, **named: Any) -> Predicate:
    """Something holds of nearly all members of a large group; it does not where more than the rest contradict it."""

    def decide(truths: dict[str, Truth], _: Facts) -> Finding:
        yes, no = (len(_names(truths, wanted)) for wanted in (Truth.YES, Truth.NO))
        share = tolerance("most")
        refuted = no / len(truths) > 1 - share + 1e-9
        truth = Truth.YES if yes / len(truths) >= share else Truth.NO if refuted else Truth.UNCLEAR
        others = [wanted for wanted in (Truth.NO, Truth.UNCLEAR) if _names(truths, wanted)]
        notes = [f"{yes} of {len(truths)}", *(_against(truths, wanted) for wanted in others)]
        return Finding(truth, "; ".join(notes))

    return _of_members(f"most of {group}", group, builder("each", *options, **named), decide, "most")


def some(group: str, builder: Builder) -> Predicate:
    """Something holds of one member of a group at least."""

    def decide(truths: dict[str, Truth], _: Facts) -> Finding:
        return Finding(max(truths.values()), _counted(truths))

    return _of_members(f"some of {group}", group, builder("it"), decide)


def only(group: str, members: tuple[str, ...], builder: Builder) -> Predicate:
    """Something holds of some members (those whose name begins so) and of no other."""

    def decide(truths: dict[str, Truth], _: Facts) -> Finding:
        answers: dict[str, list[Truth]] = {}
        for name, truth in truths.items():
            answers.setdefault(name.split(" ")[0], []).append(truth)
        if lacking := [lead for lead in members if lead not in answers]:
            raise Outside(f"there is no {', '.join(lacking)} among the {group} of this run")
        # One test set of a language is enough for it.
        best = {lead: max(answers[lead]) for lead in members}
        also = [name for name in _names(truths, Truth.YES) if name.split(" ")[0] not in members]
        against = [lead for lead in members if best[lead] != Truth.YES]
        notes = [f"{word} {_some(names)}" for word, names in (("also", also), ("not", against)) if names]
        return Finding(Truth.NO if also else min(best.values()), "; ".join(notes))

    return _of_members(f"of {group} only {', '.join(members)}", group, builder("it"), decide)


def count(
    group: str, builder: Builder, within: str = "exact", value: float | None = None, doubtful: bool = False
) -> Predicate:
    """As many members as printed; unclear as far as a tolerance goes. `doubtful`: unclear members may count or not."""

    def decide(truths: dict[str, Truth], facts: Facts) -> Finding:
        wanted = facts.number if value is None else value
        sure = len(_names(truths, Truth.YES))
        vague = len(_names(truths, Truth.UNCLEAR)) if doubtful else 0
        truth = near_enough(abs(sure - wanted), 0, tolerance(within))
        return Finding(Truth.UNCLEAR if vague and sure <= wanted <= sure + vague else truth, _counted(truths))

    return _of_members(f"how many of {group}", group, builder("it"), decide, within)


def _of_members(
    words: str, group: str, inner: Predicate, decide: Callable[[dict[str, Truth], Facts], Finding], *names: str
) -> Predicate:
    """A predicate by the answers for the members of a group, which must not be empty: nothing holds of nothing."""

    def ask(facts: Facts) -> Finding:
        if not len(facts[group]):
            raise NotRun(f"there are no {group} to look at")
        # `inner` knows the member by one of these names.
        members = {
            name: replace(facts, values=facts.values | {"it": member, "each": member}) for name, member in facts[group]
        }
        return decide({name: inner.ask(member).truth for name, member in members.items()}, facts)

    return Predicate(ask, in_words(f"{words}: {inner.rule}", *names))


def _names(truths: dict[str, Truth], wanted: Truth) -> list[str]:
    return [name for name, truth in truths.items() if truth == wanted]


def _against(truths: dict[str, Truth], wanted: Truth) -> str:
    return f"{'unclear' if wanted == Truth.UNCLEAR else 'not'}: {_some(_names(truths, wanted))}"


def _counted(truths: dict[str, Truth]) -> str:
    names = _names(truths, Truth.YES)
    return f"{len(names)} of {len(truths)}" + (f": {_some(names)}" if names else "")


def _some(names: Sequence[str]) -> str:
    """A few of many names."""
    return "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
