"""Cells of the `adjust` tables: original, adjusted, and adjusted with continual learning."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crossalign.catalog.addresses import Adjustment, Tuned, continual_init
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import evaluation_sets
from crossalign.papers.adjust.items import PAPER, further_scopes, tuned
from crossalign.papers.adjust.significance import Mark, marks
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell
from crossalign.results.published import Published
from crossalign.results.values import Value
from crossalign.results.verdict import JUDGED, OTHER, Verdict

ARMS = ("original", "adjusted", "adjusted+continual")
# Other readings of equation 2 are rows of their own; no number is printed for them.
SCOPES = {
    "both": "adjusted+continual, alpha on both terms",
    "alignment": "adjusted+continual, alpha on the alignment term",
}
SCOPE_NOTE = (
    "Equation 2 lets alpha weigh both terms of the adjustment loss, the authors' scripts the alignment term alone. The "
    "printed numbers are compared with {main}; the other reading stands below it."
)
FAMILIES = {"xnli": "XNLI", "xnlimixed": "XNLI", "wikiann": "WikiANN", "mlqa": "MLQA", "xquad": "XQuAD"}
FAMILIES |= {"tydiqa": "TyDi QA", "squad": "SQuAD"}
# The metric in scores.json -> its printed name. NER has two readings; see `judge_best`.
METRICS = {
    "nli": {"accuracy": "accuracy"},
    "qa": {"F1": "F1"},
    "ner": {"token_F1": "token F1", "F1": "entity F1"},
}
NER_NOTE = (
    "The paper calls its NER score token-level F1; its public script computes entity-level F1. Both are shown, and the "
    "one nearer to the printed numbers is judged."
)


@dataclass(frozen=True)
class Arm:
    """One system: its name, and the seeds of its runs."""

    name: str
    runs: list[Tuned]
    variant: str = ""


def arm(
    context: Context, name: str, task: str, made: Adjustment | None, variant: str = "", base: str | None = None
) -> Arm:
    """The runs of a system on a task; an original model has no adjustment."""
    scopes = {label: scope for scope, label in SCOPES.items()}
    init = continual_init(scopes.get(name)) if name.startswith("adjusted+continual") else "ref"
    return Arm(name, sorted(tuned(context.config, [task], made, init, base)), variant)


def arm_names(context: Context) -> list[str]:
    """The arms of a table: the paper's three, and a row for every further reading of alpha that the config asks for."""
    return [*ARMS, *(SCOPES[scope] for scope in further_scopes(context.config))]


def scope_notes(context: Context) -> list[str]:
    """What tells the rows of continual learning apart, where there are several."""
    main = context.config["adjustment"]["continual"]["alpha_scope"]
    reading = {"alignment": "the scripts' reading", "both": "the equation's reading"}[main]
    return [SCOPE_NOTE.format(main=reading)] if further_scopes(context.config) else []


def size_variant(pairs: str) -> str:
    """size=30K."""
    return f"size={pairs.upper()}"


def sets_in(context: Context, task: str, lang: str, base: str | None = None) -> list[DataSet]:
    """The sets of a language on which a task is tested, everything in that language."""
    run = next(iter(tuned(context.config, [task], None, base=base)))
    return [data for data in evaluation_sets(context.config, run) if data.languages == (lang,)]


def setting_of(data: DataSet) -> str:
    """How the paper calls what a set mixes."""
    if data.kind == "nli":
        return "mixed-language" if data.family == "xnlimixed" else "original"
    if len(data.languages) == 2:
        question = data.languages[0]
        return "question en, paragraph target" if question == "en" else "question target, paragraph en"
    return "monolingual"


@dataclass(frozen=True)
class Board:
    """Makes the cells of one table."""

    context: Context
    printed: Published
    base: str = "mbert"

    def keys(self, system: Arm, data: DataSet, lang: str, metric: str, kind: str) -> dict[str, str]:
        """The names of a cell, as the paper's file has them."""
        # Of these tasks each has its own kind of data.
        task = data.kind
        named = {
            "task": task,
            "dataset": data.family.removesuffix("mixed"),
            "setting": setting_of(data),
            "base": self.base,
        }
        named |= {"model": system.name, "language": lang, "variant": system.variant}
        return named | {"metric": METRICS[task][metric], "kind": kind}

    def value(self, system: Arm, data: DataSet, metric: str) -> Value:
        """Mean over the seeds of a system."""
        return self.context.results.sample(system.runs, [data], metric).value()

    def score(
        self, system: Arm, data: DataSet, lang: str, metric: str, mark: str = "", changes: dict[str, str] | None = None
    ) -> Cell:
        """An absolute score. The main setting is matched with the paper's whatever its size is in this run."""
        keys = self.keys(system, data, lang, metric, "score") | (changes or {})
        match = self.printed.find(self._wanted(keys, () if self.base == "embert" else ("variant",)))
        value = self.value(system, data, metric)
        verdict = self.context.judge(PAPER, keys["task"], runs=system.runs).number(match, value)
        return Cell(keys, value, mark=mark, printed=match, verdict=verdict)

    def gain(self, system: Arm, original: Arm, data: DataSet, lang: str, metric: str) -> Cell:
        """A difference to the original model."""
        keys = self.keys(system, data, lang, metric, "gain over original")
        match = self.printed.find(self._wanted(keys))
        value = self.value(system, data, metric).minus(self.value(original, data, metric))
        verdict = self.context.judge(PAPER, keys["task"], terms=2, runs=system.runs).number(match, value)
        return Cell(keys, value, signed=True, printed=match, verdict=verdict)

    def _wanted(self, keys: dict[str, str], hidden: Sequence[str] = ()) -> dict[str, str]:
        wanted = {name: value for name, value in keys.items() if name not in hidden}
        # Both readings of the NER score stand beside the one that is printed.
        return wanted | ({"metric": "token F1"} if keys["task"] == "ner" else {})


def compared(context: Context, system: Arm, before: Arm, data: DataSet, metric: str, sign: str) -> tuple[str, Mark]:
    """The mark of a system that differs from the one before it."""
    found = marks(context.results, system.runs, before.runs, data, metric)
    return (sign if found.differs else ""), found


def mark_note(found: list[Mark]) -> str:
    """What the marks mean, or why there are none."""
    meaning = "* differs from original, ** differs from adjusted (p < 0.05)"
    reasons = sorted({mark.reason for mark in found if mark.differs is None and mark.reason})
    note = f"{meaning}." if not reasons else f"{meaning}; not all could be tested: {', '.join(reasons)}."
    limits = {(mark.smallest_p, mark.seeds) for mark in found if mark.smallest_p is not None}
    if not limits:
        return note
    # Imported late: it needs numpy.
    from crossalign.analysis.significance import smallest_p_paired_seeds

    smallest, seeds = max(limit for limit, _ in limits), max(count for _, count in limits)
    over = "a paired t-test over examples, whose p has no lower bound"
    if smallest:
        over = f"a permutation test over sentences, whose p cannot fall below {smallest:.4f}"
    alone = f"a test of the seeds alone (n = {seeds}) could give no less than {smallest_p_paired_seeds(seeds):.4g}"
    return f"{note} The test is {over}; {alone}."


def judge_best(token: list[Cell], entity: list[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Of the two readings of the NER score only the one nearer to the printed numbers keeps its verdicts."""

    def distance(cells: list[Cell]) -> float:
        return sum(abs(cell.difference) for cell in cells if cell.difference is not None)

    def silenced(cells: list[Cell]) -> list[Cell]:
        other = Verdict(OTHER, "the other F1 is nearer to the printed numbers")
        return [replace(cell, verdict=other if cell.verdict.label in JUDGED else cell.verdict) for cell in cells]

    return (silenced(token), entity) if distance(entity) < distance(token) else (token, silenced(entity))
