"""The vocabulary of claims about many members at once: every, most, some, only, how many."""

from collections.abc import Callable
from dataclasses import replace

from crossalign.results.claims.evidence import NotRun, Outside
from crossalign.results.claims.predicates import Facts, Finding, Predicate, Truth, in_words
from crossalign.results.claims.tolerances import tolerance
from crossalign.results.claims.values import Group

# Makes the predicate about one member, which it is given the name of.
Builder = Callable[[str], Predicate]


def every(group: str, builder: Builder) -> Predicate:
    """Something holds of every member of a group."""

    def ask(facts: Facts) -> Finding:
        truths = answers(facts, group, builder)
        worst = min(truths.values())
        against = [name for name, truth in truths.items() if truth == worst]
        return Finding(worst, "" if worst == Truth.YES else f"{_word(worst)}: {_some(against)}")

    inner = builder("each")
    return Predicate(ask, f"every one of {group}: {inner.rule}", inner.tolerances)


def some(group: str, builder: Builder) -> Predicate:
    """Something holds of one member of a group at least."""

    def ask(facts: Facts) -> Finding:
        truths = answers(facts, group, builder)
        found = [name for name, truth in truths.items() if truth == Truth.YES]
        return Finding(max(truths.values()), f"{len(found)} of {len(truths)}" + (f": {_some(found)}" if found else ""))

    inner = builder("it")
    return Predicate(ask, f"some of {group}: {inner.rule}", inner.tolerances)


def most(group: str, builder: Builder) -> Predicate:
    """Something holds of nearly all members of a large group; it does not where more than the rest contradict it."""

    def ask(facts: Facts) -> Finding:
        truths = answers(facts, group, builder)
        yes, no = (sum(truth == wanted for truth in truths.values()) / len(truths) for wanted in (Truth.YES, Truth.NO))
        share = tolerance("most")
        truth = Truth.YES if yes >= share else Truth.NO if no > 1 - share + 1e-9 else Truth.UNCLEAR
        told = [f"{sum(truth == Truth.YES for truth in truths.values())} of {len(truths)}"]
        for wanted in (Truth.NO, Truth.UNCLEAR):
            if against := [name for name, answer in truths.items() if answer == wanted]:
                told.append(f"{_word(wanted)}: {_some(against)}")
        return Finding(truth, "; ".join(told))

    inner = builder("each")
    return Predicate(ask, in_words(f"most of {group}: {inner.rule}", "most"), (*inner.tolerances, "most"))


def only(group: str, members: tuple[str, ...], builder: Builder) -> Predicate:
    """Something holds of some members (those whose name begins so) and of no other."""

    def ask(facts: Facts) -> Finding:
        truths = answers(facts, group, builder)
        there = {name.split(" ")[0] for name in truths}
        if lacking := [lead for lead in members if lead not in there]:
            raise Outside(f"there is no {', '.join(lacking)} among the {group} of this run")
        inside = {lead: [t for name, t in truths.items() if name.split(" ")[0] == lead] for lead in members}
        outside = [name for name, truth in truths.items() if name.split(" ")[0] not in members and truth == Truth.YES]
        # One test set of a language is enough for it.
        least = min((max(found, default=Truth.NO) for found in inside.values()), default=Truth.NO)
        lacking = [lead for lead, found in inside.items() if max(found, default=Truth.NO) != Truth.YES]
        notes = [f"also {_some(outside)}"] if outside else []
        notes += [f"not {_some(lacking)}"] if lacking else []
        return Finding(Truth.NO if outside else least, "; ".join(notes))

    inner = builder("it")
    return Predicate(ask, f"of {group} only {', '.join(members)}: {inner.rule}", inner.tolerances)


def count(
    group: str, builder: Builder, within: str = "exact", value: float | None = None, doubtful: bool = False
) -> Predicate:
    """As many members as printed; unclear as far as a tolerance goes. `doubtful`: unclear members may count or not."""

    def ask(facts: Facts) -> Finding:
        truths = answers(facts, group, builder)
        found = [name for name, truth in truths.items() if truth == Truth.YES]
        wanted = facts.number if value is None else value
        away = abs(len(found) - wanted)
        truth = Truth.YES if away == 0 else Truth.UNCLEAR if away <= tolerance(within) else Truth.NO
        vague = sum(answer == Truth.UNCLEAR for answer in truths.values()) if doubtful else 0
        if vague and len(found) <= wanted <= len(found) + vague:
            truth = Truth.UNCLEAR
        return Finding(truth, f"{len(found)} of {len(truths)}" + (f": {_some(found)}" if found else ""))

    inner = builder("it")
    words = f"how many of {group}: {inner.rule}"
    return Predicate(ask, in_words(words, within), (*inner.tolerances, within))


def answers(facts: Facts, group: str, builder: Builder) -> dict[str, Truth]:
    """The answer for each member of a group, which must not be empty: nothing holds of nothing."""
    found: Group = facts[group]
    if not len(found):
        raise NotRun("", f"there are no {group} to look at")
    predicate = builder("it")
    return {name: predicate.ask(replace(facts, values=facts.values | {"it": member})).truth for name, member in found}


def _word(truth: Truth) -> str:
    return "unclear" if truth == Truth.UNCLEAR else "not"


def _some(names: list[str]) -> str:
    """A few of many names."""
    return "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
