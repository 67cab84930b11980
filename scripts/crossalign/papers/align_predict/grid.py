"""Table 3 of `align-predict`: the hyper-parameters that the grid search finds, its size and its run time."""

from functools import partial

from crossalign.catalog.addresses import Tuned, format_rate, trial_init
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import bases, preset
from crossalign.papers.align_predict.items import PAPER, train_set
from crossalign.papers.align_predict.random_init import own_sets_behind
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell, Column, Row, Table
from crossalign.results.comparable import other_sets
from crossalign.results.names import METRICS
from crossalign.results.names import TASKS as TASK_NAMES
from crossalign.results.values import Value
from crossalign.results.verdict import DIFFERS, NOT_RUN, OTHER, REPRODUCED, Verdict

# The order of the printed table.
ORDER = ("parsing", "ner", "pos")


class Search:
    """What the trials of one task say. `best` is the batch size and the learning rate of the best mean score."""

    def __init__(self, context: Context, task: str) -> None:
        paper = context.config[PAPER]
        source = train_set(context.config, task, "en")
        dev = DataSet("ner" if task == "ner" else "trees", source, "dev")
        seeds = range(1, paper["grid"]["seeds"][task] + 1)
        self.task = task
        self.runs: list[Tuned] = []
        self.done = 0
        missing: list[str] = []
        known: dict[tuple[int, float], float] = {}
        for batch in paper["grid"]["batch"]:
            for rate in paper["grid"]["learning_rate"]:
                runs = [Tuned(bases(context.config)[0], task, source, trial_init(batch, rate), seed) for seed in seeds]
                found = context.results.value(runs, [dev], METRICS[task])
                self.runs += runs
                self.done += found.n
                missing += found.missing
                if found.n:
                    known[batch, rate] = found.mean
        self.missing = tuple(missing)
        # Of equal settings the first of the config.
        self.best = max(known, key=lambda setting: known[setting], default=None)
        seconds = [(context.results.training(run) or {}).get("seconds") for run in self.runs]
        minutes = [each / 60 for each in seconds if isinstance(each, int | float)]
        self.minutes = Value.over(minutes)

    def counted(self, number: float | None) -> Value:
        """A number that the whole search stands behind."""
        return Value(number, None, self.done, self.done + len(self.missing), self.missing)


def table3(context: Context) -> Table:
    """Rows as printed; columns: the tasks, then the least and the largest value tried."""
    grid = context.config[PAPER]["grid"]
    searches = [Search(context, task) for task in ORDER]
    # Of each row: the cell of a task, and the values whose bounds are printed; None where no bounds are.
    rows = {
        "batch size": (partial(best, part=0), grid["batch"]),
        "learning rate": (partial(best, part=1), grid["learning_rate"]),
        "epochs (best)": (epochs, []),
        "grid search trials": (size, None),
        "run time (min)": (minutes, None),
    }
    made = [
        Row(
            name,
            [
                *(cell(context, search, {"parameter": name, "column": search.task}) for search in searches),
                *([None, None] if values is None else bounds(context, name, values)),
            ],
        )
        for name, (cell, values) in rows.items()
    ]
    heads = [*(Column(TASK_NAMES[task]) for task in ORDER), Column("least"), Column("largest")]
    notes = [
        "Batch size and learning rate: the setting with the best mean score on the English dev set. "
        "Epochs: as configured; the best of them is chosen on the dev set.",
        "Bounds: ours are those of the grid that was run, the paper's those of its search space. "
        "Run times are not judged: the hardware differs.",
    ]
    return Table(stub="parameter", columns=heads, rows=made, notes=notes, uniform=False)


def show(number: float) -> str:
    """16, or 5e-5."""
    return format_rate(number) if 0 < number < 0.01 else f"{number:g}"


def exact(
    context: Context, search: Search, keys: dict[str, str], number: float | None, text: str, other: str = ""
) -> Cell:
    """A number that is equal to the printed one or is not; of an unfinished search nobody knows yet."""
    match = context.printed.find(keys)
    verdict = context.judge(runs=search.runs, other=other).before(match, number is not None)
    if match and number is not None and search.missing:
        verdict = Verdict(NOT_RUN, f"{search.done} of {search.done + len(search.missing)} trials")
    if verdict is None:
        verdict = Verdict(REPRODUCED if number == match.number else DIFFERS)
    return Cell(keys, search.counted(number), text, printed=match, verdict=verdict)


def best(context: Context, search: Search, keys: dict[str, str], part: int) -> Cell:
    """The best batch size (part 0) or learning rate (1)."""
    number = search.best[part] if search.best else None
    other = other_sets(context.config, lambda config: own_sets_behind(config, search.task))
    return exact(context, search, keys, number, "" if number is None else show(number), other)


def size(context: Context, search: Search, keys: dict[str, str]) -> Cell:
    """How many trials were run."""
    return exact(context, search, keys, search.done or None, str(search.done or ""))


def not_judged(context: Context, keys: dict[str, str], text: str, reason: str) -> Cell:
    """A setting beside the printed one."""
    match = context.printed.find(keys)
    return Cell(keys, text=text, printed=match, verdict=Verdict(OTHER, reason) if match else Verdict(), fact=True)


def bounds(context: Context, parameter: str, values: list[float]) -> list[Cell]:
    """The least and the largest value, beside the printed ones."""
    return [
        not_judged(
            context,
            {"parameter": parameter, "column": column},
            show(choose(values)) if values else "",
            "bounds of the search space",
        )
        for column, choose in (("bound_low", min), ("bound_high", max))
    ]


def epochs(context: Context, search: Search, keys: dict[str, str]) -> Cell:
    """How many epochs are run, of which the best is taken."""
    return not_judged(context, keys, str(preset(context.config, search.task)["epochs"]), "a setting, not a result")


def minutes(context: Context, search: Search, keys: dict[str, str]) -> Cell:
    """The mean run time of a trial."""
    there = search.minutes.mean is not None
    verdict = Verdict(OTHER, "other hardware") if there else Verdict(NOT_RUN)
    value = search.minutes if there else search.counted(None)
    return Cell(keys, value, digits=1, printed=context.printed.find(keys), verdict=verdict)
