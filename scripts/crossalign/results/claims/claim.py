"""A claim of a paper as a declaration, and how a verdict comes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from crossalign.catalog.remake import command_of
from crossalign.catalog.sets import DataSet
from crossalign.results.claims.evidence import Evidence, NotRun, Outside
from crossalign.results.claims.languages import other_languages
from crossalign.results.claims.predicates import Facts, Finding, Predicate, Truth, equals
from crossalign.results.claims.quantities import Quantity, Value, examples, sample_sizes, setting
from crossalign.results.claims.tolerances import tolerance
from crossalign.results.claims.values import Curve, Group, Number
from crossalign.results.names import TASKS

HOLDS, FAILS, UNCLEAR, NOT_RUN, UNCHECKED = "holds", "does not hold", "unclear", "not run", "cannot be checked"
VERDICTS = (HOLDS, FAILS, UNCLEAR, NOT_RUN, UNCHECKED)
WORDS = {Truth.YES: HOLDS, Truth.NO: FAILS, Truth.UNCLEAR: UNCLEAR}

COLUMNS = (
    *("id", "paper", "item", "claim", "sentence", "where", "kind", "verdict", "measured"),
    *("controlled", "controlled_measured", "tolerance", "detail", "fact", "command"),
)
OWN_SETTINGS = "this run has settings of its own size"


@dataclass(frozen=True)
class Claim:
    """What a sentence of a paper says of our tables.

    `given` names the quantities; `test` is what the sentence says in kind, judged in every run; `number` what it says
    in amount, judged where languages and models are the paper's and the printed number is not in `doubt`. `says` tells
    the quantities in a sentence. A claim on the sizes of `data` depends on no model. `over` is the place in the config
    of the languages that a claim speaks of as a whole. A claim with a `reason` cannot be checked.

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
    over: str = ""
    learnt: tuple[tuple[str, Quantity], ...] = ()
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


def background(reason: str, item: str = "") -> Claim:
    """A claim that no table of ours can speak to, and why."""
    return Claim(item, reason=reason)


def made_with(item: str, says: str, *path: str, value: str | None = None, same_as: str = "", **options) -> Claim:
    """A setting of the paper's, read from the config that `item` was made with."""
    found = setting(item, *path, **options)
    return Claim(item, says, {"ours": found}, number=equals("ours", value), is_setting=True, same_as=same_as)


def stated(item: str, says: str, value: Quantity, number: Predicate) -> Claim:
    """A setting of the paper's that a table of ours shows."""
    return Claim(item, says, {"ours": value}, number=number, is_setting=True)


def sized(item: str, says: str, sets: Sequence[DataSet], number: Predicate) -> Claim:
    """The examples in some sets together."""
    return Claim(item, says, {"ours": examples(item, *sets)}, number=number, data=tuple(sets))


def each_sized(item: str, says: str, sets: Sequence[DataSet], number: Predicate) -> Claim:
    """The examples in each of some sets."""
    return Claim(item, says, {"ours": sample_sizes(item, sets)}, number=number, data=tuple(sets))


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
    # The claim (paper/id) that names the fact; itself where no other states the same.
    fact: str = ""
    command: str = ""
    sentence: str = ""
    where: str = ""
    # For the JSON file alone.
    printed: str = ""
    note: str = ""
    numbers: dict = field(default_factory=dict)

    def row(self) -> dict[str, str]:
        """The columns of the CSV file."""
        return {name: value for name, value in asdict(self).items() if name in COLUMNS}


def in_short(row: Mapping[str, str]) -> str:
    """The claim in our words, with the value that is printed."""
    amount = " ".join(part for part in (row["value"], row["unit"]) if part)
    if not row["value"] or row["value"].casefold() in row["statement"].casefold():
        return row["statement"]
    return f"{row['statement']} ({row['quantity']}: {amount})"


def judge(paper: str, row: Mapping[str, str], claim: Claim, evidence: Evidence, controlled: Evidence) -> Judged:
    """The verdict on one row of claims.csv; `controlled` is the evidence with the length of sentences taken out."""
    judged = judged_on(paper, row, claim, evidence)
    if not claim.shape or judged.verdict not in (HOLDS, FAILS, UNCLEAR):
        return judged
    # Amounts are printed of what the papers measured, so that the kind alone is asked for.
    other = judged_on(paper, row, replace(claim, number=None), controlled)
    if other.verdict in (NOT_RUN, UNCHECKED):
        return replace(judged, detail="; ".join(filter(None, (judged.detail, other.detail))))
    return replace(judged, controlled=other.verdict, controlled_measured=other.measured)


def judged_on(paper: str, row: Mapping[str, str], claim: Claim, evidence: Evidence) -> Judged:
    """The verdict by one kind of evidence."""
    shared = {"id": row["id"], "paper": paper, "claim": in_short(row), "kind": claim.kind, "where": row["where"]}
    shared |= {"sentence": row["sentence"], "printed": row["value"], "note": row["note"], "item": claim.item}
    shared["fact"] = claim.same_as or f"{paper}/{row['id']}"
    if claim.reason:
        return Judged(**shared, verdict=UNCHECKED, detail=claim.reason)
    rules = [predicate.rule for predicate in (claim.test, claim.number) if predicate]
    shared["tolerance"] = "; ".join(dict.fromkeys(rules))
    try:
        values = {name: quantity(evidence) for name, quantity in claim.given.items()}
        measured = claim.says.format(**values)
        if why := not_learnt(claim, evidence):
            return Judged(**shared, verdict=UNCHECKED, measured=measured, detail=why)
        findings, notes = asked(claim, Facts(values, row["value"]), evidence)
    except Outside as missing:
        return Judged(**shared, verdict=UNCHECKED, detail=missing.reason)
    except NotRun as missing:
        command = missing.command or command_of(claim.item, evidence.config)
        return Judged(**shared, verdict=NOT_RUN, detail=missing.reason, command=command)
    notes += [finding.note for finding in findings if finding.note]
    notes += [other] if findings and claim.over and (other := other_languages(evidence.config, claim.over)) else []
    notes += [partial] if (partial := incomplete(values)) else []
    verdict = WORDS[min(finding.truth for finding in findings)] if findings else UNCHECKED
    return Judged(
        **shared,
        verdict=verdict,
        measured=measured,
        detail="; ".join(dict.fromkeys(notes)),
        numbers={name: plain(value) for name, value in values.items()},
    )


def not_learnt(claim: Claim, evidence: Evidence) -> str:
    """Which of the scores that a claim rests on are not above guessing; empty where all are."""
    told = []
    for task, quantity in claim.learnt:
        floor, value = tolerance(f"floor_{task}"), quantity(evidence)
        members = {"": value} if isinstance(value, Number) else dict(value)
        below = {name: number for name, number in members.items() if number.value - number.noise <= floor}
        if below:
            scores = ", ".join(f"{name} {number} ± {number.noise:.2f}".strip() for name, number in below.items())
            told.append(f"{TASKS[task]} {scores}, where guessing may reach {floor:g}")
    return f"not learnt: {'; '.join(told)}" if told else ""


def asked(claim: Claim, facts: Facts, evidence: Evidence) -> tuple[list[Finding], list[str]]:
    """The answers that count in this run, and why others do not."""
    findings = [claim.test.ask(facts)] if claim.test else []
    if claim.number is None:
        return findings, []
    if why := spared(claim, evidence):
        return findings, [f"not judged in amount: {why}" if findings else f"not judged: {why}"]
    if claim.doubt:
        return findings, [f"doubtful in print, not judged: {claim.doubt}"]
    return [*findings, claim.number.ask(facts)], []


def spared(claim: Claim, evidence: Evidence) -> str:
    """Why amounts are not judged in this run; empty where they are."""
    if claim.data:
        return evidence.other_data(claim.data)
    found = evidence.stand_in(claim.item)
    if found is None:
        return ""
    return OWN_SETTINGS if claim.is_setting else found.reason


def incomplete(values: Mapping[str, Value]) -> str:
    """That runs are missing behind the numbers."""
    found = [number for value in values.values() for number in numbers_of(value) if number.n < number.wanted]
    worst = min(found, key=lambda number: number.n / number.wanted, default=None)
    return f"{worst.n} of {worst.wanted} runs" if worst else ""


def numbers_of(value: Value) -> list[Number]:
    """Every number in a value."""
    if isinstance(value, Number):
        return [value]
    if isinstance(value, Curve):
        return list(value.points.values())
    return [number for _, member in value for number in numbers_of(member)] if isinstance(value, Group) else []


def plain(value: Value) -> object:
    """A value for JSON: numbers with their error, rounded."""
    if isinstance(value, Number):
        return {"value": round(value.value, 6), "error": round(value.error, 6), "n": value.n}
    if isinstance(value, Curve):
        return {str(layer): round(point.value, 6) for layer, point in sorted(value.points.items())}
    if isinstance(value, Group):
        return {name: plain(member) for name, member in value}
    return value
