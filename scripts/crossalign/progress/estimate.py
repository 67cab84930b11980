"""How far a run is, and about how long it still takes: by the seconds that its finished jobs took, rule by rule."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

# No guess while so many of all jobs belong to rules of which none has finished yet.
UNSEEN = 1 / 3


@dataclass
class Tally:
    """Jobs by rule: all, done, and their seconds; and the jobs at work, each with its rule and its start."""

    planned: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
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
            self.seconds[rule] += now - start

    @property
    def counts(self) -> tuple[int, int]:
        """Jobs that are done, and all."""
        return self.done.total(), self.planned.total()

    def left(self, now: float) -> float | None:
        """About how many seconds are left; None while too little is known."""
        seen = {rule: self.seconds[rule] / count for rule, count in self.done.items()}
        waiting = {rule: count - self.done[rule] for rule, count in self.planned.items() if count > self.done[rule]}
        unseen = sum(count for rule, count in waiting.items() if rule not in seen)
        if self.first is None or not seen or now <= self.first or unseen > UNSEEN * self.planned.total():
            return None
        mean = self.seconds.total() / self.done.total()
        work = sum(seen.get(rule, mean) * count for rule, count in waiting.items())
        # What a job at work has behind it is not left, but one that takes longer than usual is never ahead of its rule.
        going = [(rule, now - start) for rule, start in self.running.values()]
        work -= sum(min(spent, seen.get(rule, mean)) for rule, spent in going)
        # Seconds of work by the second: jobs side by side, and what Snakemake needs between them.
        pace = (self.seconds.total() + sum(spent for _, spent in going)) / (now - self.first)
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
