"""A claim of a paper as a declaration, how a verdict comes of it, and the files that tell the verdicts."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import filter as filter_names
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from crossalign.catalog.remake import command_of
from crossalign.catalog.sets import DataSet
from crossalign.catalog.stand_in import REHEARSAL
from crossalign.results.claims.evidence import Evidence, NotRun, Outside
from crossalign.results.claims.predicates import Facts, Predicate, Truth, equals
from crossalign.results.claims.quantities import Quantity, examples, examples_of_each, setting
from crossalign.results.claims.tolerances import tolerance
from crossalign.results.claims.values import Group, Value
from crossalign.results.comparable import other_languages, other_sets
from crossalign.results.names import TASKS
from crossalign.results.published import PRINTED
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

HOLDS, FAILS, UNCLEAR, NOT_RUN, UNCHECKED = "holds", "does not hold", "unclear", "not run", "cannot be checked"
VERDICTS = (HOLDS, FAILS, UNCLEAR, NOT_RUN, UNCHECKED)
WORDS = {Truth.YES: HOLDS, Truth.NO: FAILS, Truth.UNCLEAR: UNCLEAR}

# Of a paper's claims.csv in resources/papers, and of the claims.csv of a run.
FIELDS = ("id", "statement", "sentence", "where", "quantity", "value", "unit", "note")
COLUMNS = (
    *("id", "paper", "item", "claim", "sentence", "where", "kind", "verdict", "measured"),
    *("controlled", "controlled_measured", "tolerance", "detail", "why", "fact", "command"),
)


@dataclass(frozen=True)
class Claim:
    """What a sentence of a paper says of our tables.

    `given` names the quantities; `test` is what the sentence says in kind, judged in every run; `number` what it says
    in amount, judged where languages and models are the paper's and the printed number is not in `doubt`. `says` tells
    the quantities in a sentence. A claim on the sizes of `data` depends on no model. `over` are the languages that a
    claim speaks of as a whole: their place in the config, or what finds them in one. Where these are not what the
    amount depends on, `measured_on` finds its sets in a config. A claim with a `reason` cannot be checked.

    `learnt` are tasks with the scores that must be above guessing, or there is nothing to check. `shape`: about
    similarity over layers, and judged a second time with the length of sentences taken out. `same_as`: the claim
    (paper/id) that states the same fact; both get one verdict and count once.
    """

    item: str = ""
    says: str = ""
    given: Mapping[str, Quantity] = field(default_factory=dict)
    test: Predicate | None = None
    number: Predicate | None = None
    doubt: str = ""
    reason: str = ""
    is_setting: bool = False
    data: tuple[DataSet, ...] = ()
    over: str | Callable[[dict], Sequence[str]] = ""
    measured_on: Callable[[dict], Sequence[DataSet]] | None = None
    learnt: Mapping[str, Quantity] = field(default_factory=dict)
    shape: bool = False
    same_as: str = ""

    @property
    def kind(self) -> str:
        """What sort of claim it is."""
        if self.reason:
            return "background"
        if self.is_setting:
            return "setting"
        return "both" if self.test and self.number else "qualitative" if self.test else "number"


def claim(item: str, says: str, test: Predicate | None = None, **named: Any) -> Claim:
    """A claim with its quantities by name, beside the options of `Claim`: `claim(T1, "…", positive("a"), a=…)`."""
    options = {name: named.pop(name) for name in [option.name for option in fields(Claim)] if name in named}
    return Claim(item, says, named, test, **options)


def background(reason: str) -> Claim:
    """A claim that no table of ours can speak to, and why."""
    return Claim(reason=reason)


def stated(item: str, says: str, ours: Quantity, value: str | None = None, same_as: str = "") -> Claim:
    """A setting of the paper's that a table of ours shows: just as printed, or as `value`."""
    return claim(item, says, ours=ours, number=equals("ours", value), is_setting=True, same_as=same_as)


def made_with(item: str, says: str, *path: str, value: str | None = None, same_as: str = "", **options) -> Claim:
    """A setting of the paper's, read from the config that `item` was made with."""
    return stated(item, says, setting(item, *path, **options), value, same_as)


def sized(item: str, says: str, sets: Sequence[DataSet], number: Predicate) -> Claim:
    """The examples in some sets together."""
    return claim(item, says, ours=examples(item, sets), number=number, data=tuple(sets))


def each_sized(item: str, says: str, sets: Sequence[DataSet], number: Predicate) -> Claim:
    """The examples in each of some sets."""
    return claim(item, says, ours=examples_of_each(item, sets), number=number, data=tuple(sets))


@dataclass(frozen=True)
class Judged:
    """One claim with its verdict: the columns of claims.csv."""

    id: str
    paper: str
    item: str
    claim: str
    kind: str
    verdict: str
    measured: str = ""
    # The verdict with the length of sentences taken out, of claims about similarity over layers.
    controlled: str = ""
    controlled_measured: str = ""
    tolerance: str = ""
    detail: str = ""
    # What the config says of why the claim does not come out in this run.
    why: str = ""
    # The claim (paper/id) that names the fact; itself where no other states the same.
    fact: str = ""
    command: str = ""
    sentence: str = ""
    where: str = ""
    # For the JSON file alone.
    printed: str = ""
    note: str = ""
    numbers: dict = field(default_factory=dict)


def read_claims(path: Path) -> list[dict[str, str]]:
    """The rows of a paper's claims.csv."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    for place, row in enumerate(rows, start=2):
        if any(row.get(name) is None for name in FIELDS):
            raise UserError(f"{path}: line {place}: the columns {', '.join(FIELDS)} are needed; found {row}")
    return rows


def declared(paper: str, claims: Mapping[str, Claim], folder: Path = PRINTED) -> list[tuple[dict[str, str], Claim]]:
    """The rows of a paper's claims.csv, each with its declaration; neither may lack the other."""
    path = folder / paper / "claims.csv"
    rows = read_claims(path)
    names = [row["id"] for row in rows]
    if lacking := [name for name in names if name not in claims]:
        raise UserError(
            f"{path}: no predicate and no reason is declared for {', '.join(lacking)}; see docs/extend/claim.md"
        )
    if unknown := [name for name in claims if name not in names]:
        raise UserError(f"{path}: no row for {', '.join(unknown)}, which the paper's claims.py declares")
    return [(row, claims[row["id"]]) for row in rows]


def judge_rows(rows: Iterable[tuple[str, Mapping[str, str], Claim]], evidence: Evidence) -> list[Judged]:
    """A verdict on every claim, told by paper, row and declaration; claims that state one fact get the worst one."""
    controlled = evidence.controlled()
    verdicts = [judge(*row, evidence, controlled) for row in rows]
    facts = defaultdict(list)
    for judged in verdicts:
        facts[judged.fact].append(judged)
    return explained([shared(judged, facts[judged.fact]) for judged in verdicts], evidence.config.get("reasons") or {})


def explained(judged: list[Judged], reasons: Mapping[str, str]) -> list[Judged]:
    """Claims that do not come out with the reason that the config knows (`anc/cka-*`: a pattern may name several).

    Of several patterns the one counts that spells out most of the name: config.json has them in another order.
    """
    names = [f"{claim.paper}/{claim.id}" for claim in judged]
    if unknown := [pattern for pattern in reasons if not filter_names(names, pattern)]:
        raise UserError(f"config: reasons: '{unknown[0]}' is no claim; names are such as {names[0]}, as claims.csv has")

    def why(claim: Judged, name: str) -> str:
        fitting = [pattern for pattern in reasons if fnmatchcase(name, pattern)]
        unlearnt = claim.verdict == UNCHECKED and claim.detail.startswith("not learnt")
        if not fitting or not (unlearnt or claim.verdict in (FAILS, UNCLEAR)):
            return ""
        return reasons[max(fitting, key=lambda pattern: len(pattern.partition("*")[0]))]

    return [replace(claim, why=why(claim, name)) for claim, name in zip(judged, names, strict=True)]


def shared(claim: Judged, members: list[Judged]) -> Judged:
    """One claim of a fact with the verdict of all."""
    others = [f"{other.paper}/{other.id}" for other in members if other is not claim]
    if not others:
        return claim
    verdicts = {member.verdict for member in members}
    worst = next((verdict for verdict in (FAILS, UNCLEAR, HOLDS) if verdict in verdicts), claim.verdict)
    return replace(claim, verdict=worst, detail=_joined(claim.detail, f"one fact with {', '.join(others)}"))


def judge(paper: str, row: Mapping[str, str], claim: Claim, evidence: Evidence, controlled: Evidence) -> Judged:
    """The verdict on one row of claims.csv; `controlled` is the evidence with the length of sentences taken out."""
    judged = judged_on(paper, row, claim, evidence)
    if not claim.shape or judged.verdict not in (HOLDS, FAILS, UNCLEAR):
        return judged
    # Amounts are printed of what the papers measured, so that the kind alone is asked for.
    other = judged_on(paper, row, replace(claim, number=None), controlled)
    if other.verdict in (NOT_RUN, UNCHECKED):
        return replace(judged, detail=_joined(judged.detail, other.detail))
    return replace(judged, controlled=other.verdict, controlled_measured=other.measured)


def judged_on(paper: str, row: Mapping[str, str], claim: Claim, evidence: Evidence) -> Judged:
    """The verdict by one kind of evidence."""
    judged = Judged(
        **{name: row[name] for name in ("id", "sentence", "where", "note")},
        paper=paper,
        item=claim.item,
        claim=in_short(row),
        kind=claim.kind,
        verdict=UNCHECKED,
        tolerance=_joined(*(predicate.rule for predicate in (claim.test, claim.number) if predicate)),
        fact=claim.same_as or f"{paper}/{row['id']}",
        printed=row["value"],
    )
    if reason := REHEARSAL.reason if evidence.config.get("rehearsal") else claim.reason:
        return replace(judged, detail=reason)
    try:
        values = {name: quantity(evidence) for name, quantity in claim.given.items()}
        measured = claim.says.format(**values)
        if why := not_learnt(claim, evidence):
            return replace(judged, measured=measured, detail=why)
        facts, unjudged = Facts(values, row["value"]), not_judged(claim, evidence)
        asked = [claim.test, None if unjudged else claim.number]
        findings = [predicate.ask(facts) for predicate in asked if predicate]
    except Outside as missing:
        return replace(judged, detail=str(missing))
    except NotRun as missing:
        command = command_of(missing.item or claim.item, evidence.config)
        return replace(judged, verdict=NOT_RUN, detail=str(missing), command=command)
    languages = other_languages(evidence.config, claim.over) if findings and claim.over else ""
    if languages in unjudged:
        languages = ""
    notes = [finding.note for finding in findings]
    return replace(
        judged,
        verdict=WORDS[min(finding.truth for finding in findings)] if findings else UNCHECKED,
        measured=measured,
        detail=_joined(unjudged, *notes, languages, incomplete(values)),
        numbers={name: value if isinstance(value, str) else value.plain() for name, value in values.items()},
    )


def _joined(*notes: str) -> str:
    return "; ".join(dict.fromkeys(filter(None, notes)))


def in_short(row: Mapping[str, str]) -> str:
    """The claim in our words, with the value that is printed."""
    amount = " ".join(part for part in (row["value"], row["unit"]) if part)
    if not row["value"] or row["value"].casefold() in row["statement"].casefold():
        return row["statement"]
    return f"{row['statement']} ({row['quantity']}: {amount})"


def not_learnt(claim: Claim, evidence: Evidence) -> str:
    """Which scores of a claim are not above guessing; empty if none."""
    told = []
    for task, quantity in claim.learnt.items():
        floor, value = tolerance(f"floor_{task}"), quantity(evidence)
        members = value.members if isinstance(value, Group) else {"": value}
        below = {name: number for name, number in members.items() if number.value - number.noise <= floor}
        if below:
            scores = ", ".join(f"{name} {number} ± {number.noise:.2f}".strip() for name, number in below.items())
            told.append(f"{TASKS[task]} {scores}, where guessing may reach {floor:g}")
    return f"not learnt: {'; '.join(told)}" if told else ""


def not_judged(claim: Claim, evidence: Evidence) -> str:
    """Why amounts are not judged in this run; empty where they are, or where there are none."""
    if claim.number is None:
        return ""
    if claim.data:
        why = evidence.other_data(claim.data)
    else:
        stand_in = evidence.stand_in(claim.item)
        why = stand_in.reason if stand_in else ""
        if why and claim.is_setting:
            why = "this run has settings of its own size"
        elif not why and not claim.is_setting:
            why = not_comparable(claim, evidence.config)
    if why:
        return f"not judged in amount: {why}" if claim.test else f"not judged: {why}"
    return f"doubtful in print, not judged: {claim.doubt}" if claim.doubt else ""


def not_comparable(claim: Claim, config: dict) -> str:
    """Why an amount is not of what the paper measured; empty where it is."""
    if claim.measured_on:
        return other_sets(config, claim.measured_on)
    return other_languages(config, claim.over) if claim.over else ""


def incomplete(values: Mapping[str, Value]) -> str:
    """That runs are missing behind the numbers."""
    numbers = [number for value in values.values() if not isinstance(value, str) for number in value.numbers()]
    worst = min(numbers, key=lambda number: number.n / number.wanted, default=None)
    return f"{worst.n} of {worst.wanted} runs" if worst and worst.n < worst.wanted else ""


def write_claims(judged: Iterable[Judged], table: Path, document: Path) -> None:
    """Write claims.csv and claims.json; the latter also holds the single numbers."""
    claims = [asdict(claim) for claim in judged]
    with write_atomic(table) as stream:
        writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(claims)
    write_json(document, claims, ensure_ascii=False, indent=1, allow_nan=False)


def counts(judged: Iterable[Judged]) -> Mapping[str, int]:
    """How many facts have each verdict, in the order of the verdicts: what two claims say alike counts once."""
    verdicts = list({claim.fact: claim.verdict for claim in judged}.values())
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}
