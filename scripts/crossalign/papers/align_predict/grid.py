"""Table 3 of `align-predict`: the hyper-parameters that the grid search finds, its size and its run time."""

from crossalign.catalog.addresses import Tuned, format_rate, trial_init
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import preset
from crossalign.papers.align_predict.items import PAPER, train_set
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell, Column, Row, Table
from crossalign.results.names import METRICS
from crossalign.results.names import TASKS as TASK_NAMES
from crossalign.results.published import Printed, Published, published
from crossalign.results.values import Sample, Value
from crossalign.results.verdict import DIFFERS, NOT_RUN, OTHER, REPRODUCED, Verdict

# The order of the printed table.
ORDER = ("parsing", "ner", "pos")
Setting = tuple[int, float]


def trials(context: Context, task: str) -> dict[Setting, list[Tuned]]:
    """The runs of the grid by batch size and learning rate."""
    paper = context.config[PAPER]
    source = train_set(context.config, task, "en")
    return {
        (batch, rate): [
            Tuned(paper["base"], task, source, trial_init(batch, rate), seed)
            for seed in range(1, paper["grid"]["seeds"][task] + 1)
        ]
        for batch in paper["grid"]["batch"]
        for rate in paper["grid"]["learning_rate"]
    }


class Search:
    """What the trials of one task say."""

    def __init__(self, context: Context, task: str) -> None:
        self.grid = trials(context, task)
        self.runs = [run for runs in self.grid.values() for run in runs]
        kind = "ner" if task == "ner" else "trees"
        dev = DataSet(kind, train_set(context.config, task, "en"), "dev")
        scored = {key: context.results.sample(runs, [dev], METRICS[task]) for key, runs in self.grid.items()}
        self.missing = tuple(address for sample in scored.values() for address in sample.missing)
        self.done = sum(len(sample.values) for sample in scored.values())
        self.wanted = self.done + len(self.missing)
        known = {key: sample.value().mean for key, sample in scored.items() if sample.values}
        # Of equal settings the first of the config.
        self.best: Setting | None = max(known, key=lambda key: known[key]) if known else None
        seconds = {}
        for run in self.runs:
            found = (context.results.training(run) or {}).get("seconds")
            if isinstance(found, int | float):
                seconds[len(seconds)] = found / 60
        self.minutes = Sample(seconds).value()

    def counted(self, number: float | None) -> Value:
        """A number that the whole search stands behind."""
        return Value(number, None, self.done, self.wanted, self.missing)


def table3(context: Context) -> Table:
    """Rows as printed; columns: the tasks, then the least and the largest value tried."""
    item = f"{PAPER}/table3"
    printed = published(item)
    paper = context.config[PAPER]
    searches = {task: Search(context, task) for task in ORDER}
    batches, rates = paper["grid"]["batch"], paper["grid"]["learning_rate"]
    rows = [
        Row(
            "batch size",
            [*(best(context, printed, searches, task, 0) for task in ORDER), *bounds(printed, "batch size", batches)],
        ),
        Row(
            "learning rate",
            [*(best(context, printed, searches, task, 1) for task in ORDER), *bounds(printed, "learning rate", rates)],
        ),
        Row(
            "epochs (best)",
            [*(epochs(context, printed, task) for task in ORDER), *bounds(printed, "epochs (best)", [])],
        ),
        Row("grid search trials", [*(size(context, printed, searches[task], task) for task in ORDER), None, None]),
        Row("run time (min)", [*(minutes(printed, searches[task], task) for task in ORDER), None, None]),
    ]
    heads = [*(Column(TASK_NAMES[task]) for task in ORDER), Column("least"), Column("largest")]
    notes = [
        "Batch size and learning rate: the setting with the best mean score on the English dev set. "
        "Epochs: as configured; the best of them is chosen on the dev set.",
        "Bounds: ours are those of the grid that was run, the paper's those of its search space. "
        "Run times are not judged: the hardware differs.",
    ]
    return Table(item, context.title(item), "parameter", heads, rows, notes, uniform=False, published=printed)


def show(number: float) -> str:
    """16, or 5e-5."""
    return format_rate(number) if 0 < number < 0.01 else f"{number:g}"


def best(context: Context, printed: Published, searches: dict[str, Search], task: str, part: int) -> Cell:
    """The best batch size (part 0) or learning rate (1)."""
    parameter = ("batch size", "learning rate")[part]
    search = searches[task]
    number = search.best[part] if search.best else None
    keys = {"parameter": parameter, "column": task}
    match = printed.find(keys)
    value = search.counted(number)
    text = "" if number is None else show(number)
    verdict = context.judge(PAPER, runs=search.runs).before(match, number is not None) or exact(number, match)
    return Cell(keys, value, text, printed=match, verdict=verdict)


def exact(number: float | None, printed: Printed) -> Verdict:
    """Settings are equal or they are not."""
    return Verdict(REPRODUCED if number is not None and number == printed.number else DIFFERS)


def bounds(printed: Published, parameter: str, values: list[float]) -> list[Cell]:
    """The least and the largest value, beside the printed ones."""
    cells = []
    for column, choose in (("bound_low", min), ("bound_high", max)):
        keys = {"parameter": parameter, "column": column}
        match = printed.find(keys)
        verdict = Verdict(OTHER, "bounds of the search space") if match else Verdict()
        cells.append(Cell(keys, text=show(choose(values)) if values else "", printed=match, verdict=verdict, fact=True))
    return cells


def epochs(context: Context, printed: Published, task: str) -> Cell:
    """How many epochs are run, of which the best is taken."""
    keys = {"parameter": "epochs (best)", "column": task}
    match = printed.find(keys)
    number = preset(context.config, task)["epochs"]
    verdict = Verdict(OTHER, "a setting, not a result") if match else Verdict()
    return Cell(keys, text=str(number), printed=match, verdict=verdict, fact=True)


def size(context: Context, printed: Published, search: Search, task: str) -> Cell:
    """How many trials were run."""
    keys = {"parameter": "grid search trials", "column": task}
    match = printed.find(keys)
    number = search.done or None
    verdict = context.judge(PAPER, runs=search.runs).before(match, number is not None) or exact(number, match)
    return Cell(keys, search.counted(number), str(number) if number else "", printed=match, verdict=verdict)


def minutes(printed: Published, search: Search, task: str) -> Cell:
    """The mean run time of a trial."""
    keys = {"parameter": "run time (min)", "column": task}
    match = printed.find(keys)
    there = search.minutes.mean is not None
    verdict = Verdict(OTHER, "other hardware") if there else Verdict(NOT_RUN)
    value = search.minutes if there else search.counted(None)
    return Cell(keys, value, digits=1, printed=match, verdict=verdict)
