"""Cells of the `adjust` tables: original, adjusted, and adjusted with continual learning; and what sets them apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crossalign.catalog.addresses import Adjustment, Tuned, continual_init
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import evaluation_sets
from crossalign.papers.adjust.items import PAPER, adjustment, further_scopes, tuned
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell
from crossalign.results.frames import set_key
from crossalign.results.reading import Results
from crossalign.results.values import Value
from crossalign.results.verdict import JUDGED, OTHER, Verdict
from crossalign.tasks.predictions import read_predictions

if TYPE_CHECKING:
    import numpy as np

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
# How the paper's file calls what the config varies.
AGGREGATIONS = {"subword": "subword alignment"}
TOKENS = {"cls": "[CLS]", "clssep": "[CLS] [SEP]"}
# The p value below which two systems differ (section 5.1).
LEVEL = 0.05


@dataclass(frozen=True)
class Arm:
    """One system: its name, and the seeds of its runs."""

    name: str
    runs: list[Tuned]
    variant: str = ""

    def trained_on(self, source: str) -> "Arm":
        """The same system with another training set."""
        return replace(self, runs=[replace(run, source=source) for run in self.runs])


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
    main = context.config["pull"]["continual"]["alpha_scope"]
    reading = {"alignment": "the scripts' reading", "both": "the equation's reading"}[main]
    return [SCOPE_NOTE.format(main=reading)] if further_scopes(context.config) else []


def size_variant(pairs: str) -> str:
    """size=30K."""
    return f"size={pairs.upper()}"


@dataclass(frozen=True)
class Ablation:
    """A study of one language: its key in the config, the field that it varies, and the paper's names of the values."""

    key: str
    field: str
    variant: Callable[[str], str]

    def arms(self, context: Context, task: str) -> dict[str, Arm]:
        """The adjusted system for every value, by its variant."""
        settings = context.config[PAPER][self.key]
        made = {
            self.variant(value): adjustment(context.config, settings["lang"], **{self.field: value})
            for value in settings.get("values", settings.get("pairs"))
        }
        return {variant: arm(context, "adjusted", task, each, variant) for variant, each in made.items()}


ABLATIONS = {
    "table5": Ablation("sizes", "pairs", size_variant),
    "table6": Ablation("aggregations", "aggregation", lambda value: f"aggregation={AGGREGATIONS.get(value, value)}"),
    "table7": Ablation("token_choices", "tokens", lambda value: f"aligned tokens={TOKENS.get(value, value)}"),
}


def sets_in(context: Context, task: str, lang: str, base: str | None = None) -> list[DataSet]:
    """The sets of a language on which a task is tested, everything in that language."""
    run = next(iter(tuned(context.config, [task], None, base=base)))
    return [data for data in evaluation_sets(context.config, run) if data.languages == (lang,)]


def study_columns(context: Context, lang: str, base: str | None = None) -> list[tuple[str, DataSet, str]]:
    """The columns of tables 5, 6, 7, 9: task, set and metric; everything in one language."""
    return [
        (task, data, metric)
        for task in context.config[PAPER]["tasks"]
        for data in sets_in(context, task, lang, base)
        if data.family != "xnlimixed"
        for metric in METRICS[task]
    ]


def setting_of(data: DataSet) -> str:
    """How the paper calls what a set mixes."""
    if data.kind == "nli":
        return "mixed-language" if data.family == "xnlimixed" else "original"
    if len(data.languages) == 2:
        question = data.languages[0]
        return "question en, paragraph target" if question == "en" else "question target, paragraph en"
    return "monolingual"


def column_of(data: DataSet) -> str:
    """The data set that heads a column: the mixed-language XNLI stands under the original one."""
    return data.family.removesuffix("mixed")


@dataclass(frozen=True)
class Board:
    """Makes the cells of one table."""

    context: Context
    base: str = "mbert"

    def cell(
        self,
        system: Arm,
        data: DataSet,
        lang: str,
        metric: str,
        original: Arm | None = None,
        mark: str = "",
        tested: bool = False,
        setting: str = "",
    ) -> Cell:
        """The score of a system or, where `original` is given, its gain over that one."""
        # Of these tasks each has its own kind of data.
        task, wording = data.kind, METRICS[data.kind][metric]
        keys = {"task": task, "dataset": column_of(data), "setting": setting or setting_of(data), "base": self.base}
        keys |= {"model": system.name, "language": lang, "variant": system.variant}
        keys |= {"metric": wording, "kind": "gain over original" if original else "score"}
        # Both readings of the NER score stand beside the one that is printed.
        wanted = keys | ({"metric": "token F1"} if task == "ner" else {})
        if not original and self.base != "embert":
            # The main setting is matched with the paper's whatever its size is in this run.
            del wanted["variant"]
        match = self.context.printed.find(wanted)
        value = self.value(system, data, metric)
        if original:
            value = value.minus(self.value(original, data, metric))
        judge = self.context.judge(task, terms=2 if original else 1, runs=system.runs)
        verdict = judge.number(match, value)
        return Cell(keys, value, signed=bool(original), mark=mark, tested=tested, printed=match, verdict=verdict)

    def value(self, system: Arm, data: DataSet, metric: str) -> Value:
        """Mean over the seeds of a system."""
        return self.context.results.value(system.runs, [data], metric)


@dataclass(frozen=True)
class Mark:
    """Whether two systems differ at the level of the paper; None, with a reason, when it cannot be said."""

    differs: bool | None
    reason: str = ""
    # The smallest p that the test can give, however clear the difference, and the seeds that it is taken over.
    smallest_p: float | None = None
    seeds: int = 0


def marks(results: Results, run_a: Sequence[Tuned], run_b: Sequence[Tuned], data: DataSet, metric: str) -> Mark:
    """Whether two systems, each given as its seeds, differ on a set (`adjust`, section 5.1).

    NLI and QA: paired t-test over examples, averaged over the seeds. NER: permutation test over the sentences of all
    seeds that both have.
    """
    task = run_a[0].task
    counts = [
        {run.seed: found for run in runs if (found := _counts(results, run, data, metric))} for runs in (run_a, run_b)
    ]
    common = sorted(counts[0].keys() & counts[1].keys())
    if not common:
        return Mark(None, "predictions are missing")
    import numpy as np

    from crossalign.analysis.significance import example_values, paired_t_test, permutation_test

    order = counts[0][common[0]][0]
    stacked = []
    for side in counts:
        aligned = [_aligned(order, *side[seed]) for seed in common]
        if any(array is None for array in aligned):
            return Mark(None, "the predictions are of different examples; evaluate the models again")
        stacked.append(np.stack(aligned))
    if task == "ner":
        test = permutation_test(*stacked)
    elif len(order) < 2:
        return Mark(None, "there are too few examples")
    else:
        test = paired_t_test(*map(example_values, stacked))
    return Mark(test.p < LEVEL, smallest_p=test.smallest_p, seeds=len(common))


def _counts(results: Results, run: Tuned, data: DataSet, metric: str) -> "tuple[list[str], np.ndarray] | None":
    """The examples of a run on a set and their counts. A file is read once, and only counts are kept of it."""
    kept = results.counts
    if run not in kept:
        kept[run] = {}
        path = results.folder / run.path() / "predictions.jsonl.gz"
        if path.is_file():
            from crossalign.analysis.significance import example_counts
            from crossalign.tasks import get_task

            task = get_task(run.task)
            _, sets = read_predictions(path)
            for name, rows in sets.items():
                ids = [row["id"] for row in rows]
                for one in METRICS[run.task]:
                    kept[run][name, one] = (ids, example_counts(task, rows, one))
    return kept[run].get((set_key(data), metric))


def _aligned(order: list[str], ids: list[str], counts: "np.ndarray") -> "np.ndarray | None":
    """The counts in the order of another run's examples; None when they are other examples."""
    if ids == order:
        return counts
    places = {name: place for place, name in enumerate(ids)}
    if len(places) != len(order) or any(name not in places for name in order):
        return None
    return counts[[places[name] for name in order]]


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
