"""How far a run is, and about how long it still takes: by the seconds that its finished jobs took, rule by rule."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean

# Usual seconds of jobs that take long, in the demo; others take about one. Used for rules of which no job has finished
# yet, in proportion to those of which one has: only the ratios count.
USUAL = {
    **{
        "finetune": 19,
        "finetune_random": 14,
        "evaluate": 6,
        "train_bilstm": 11,
        "embed_sentences": 4,
        "embed_words": 5,
    },
    **{"adjust_model": 33, "adapt_to_text": 24, "align_bitext": 10, "align_pieces": 10, "make_world": 11},
    **{"pretrain": 27, "download_model": 20},
}
# The last jobs of a rule tell best what the next takes: other work on the machine comes and goes.
LAST = 10
# No guess before rules with this part of the work have been seen.
SEEN = 1 / 2


@dataclass
class Tally:
    """Jobs by rule: all, done, and their seconds; and the jobs that run, each with its rule and its start."""

    planned: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    running: dict[int, tuple[str, float]] = field(default_factory=dict)
    first: float | None = None

    def plan(self, jobs: Mapping[str, int]) -> None:
        """What is to be done, as Snakemake counts it."""
        self.planned = Counter({rule: count for rule, count in jobs.items() if rule != "total"})

    def start(self, job: int, rule: str, now: float) -> None:
        self.first = now if self.first is None else self.first
        self.running[job] = rule, now

    def fail(self, job: int) -> None:
        """A job that may come again."""
        self.running.pop(job, None)

    def finish(self, job: int, now: float) -> None:
        if job in self.running:
            rule, start = self.running.pop(job)
            self.done[rule] += 1
            self.seconds.setdefault(rule, []).append(now - start)

    @property
    def counts(self) -> tuple[int, int]:
        """Jobs that are done, and all."""
        return self.done.total(), self.planned.total()

    def left(self, now: float) -> float | None:
        """About how many seconds are left; None while too little is known."""
        if self.first is None or now <= self.first or not self.done:
            return None
        usual = {rule: USUAL.get(rule, 1) for rule in self.planned | self.done}
        share = sum(usual[rule] * self.planned[rule] for rule in self.done)
        if share < SEEN * sum(usual[rule] * count for rule, count in self.planned.items()):
            return None
        spent = sum(map(sum, self.seconds.values()))
        slowness = spent / sum(usual[rule] * count for rule, count in self.done.items())
        means = {rule: usual[rule] * slowness for rule in usual}
        means |= {rule: mean(seconds[-LAST:]) for rule, seconds in self.seconds.items()}
        work = sum(means[rule] * max(count - self.done[rule], 0) for rule, count in self.planned.items())
        # What running jobs have behind them is not left; one that takes longer than its rule's others is nearly done.
        running = [(rule, now - start) for rule, start in self.running.values()]
        work -= sum(min(seconds, means.get(rule, seconds)) for rule, seconds in running)
        # Seconds of work in a second: jobs side by side, and what Snakemake needs between them.
        pace = (spent + sum(seconds for _, seconds in running)) / (now - self.first)
        return max(work, 0.0) / pace if pace > 0 else None


def duration(seconds: float) -> str:
    """A time for people: 4 minutes."""
    if seconds < 90:
        return f"{round(seconds)} second{'s' * (round(seconds) != 1)}"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} minutes"
    hours = round(seconds / 3600)
    return f"{hours} hours" if hours < 48 else f"{round(seconds / 86400)} days"


def time_left(seconds: float | None) -> str:
    """What is said of the time that is left."""
    if seconds is None:
        return "time left not known yet"
    return f"about {duration(max(seconds, 60))} left" if seconds >= 45 else "less than a minute left"
