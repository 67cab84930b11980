"""One plan: the jobs behind the targets, what is done, what the rest costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crossalign.catalog.addresses import Base
from crossalign.catalog.runs import Catalog
from crossalign.fetch.register import Dataset, Model
from crossalign.plan.costs import HOST, Price, Prices, read_benchmarks, read_costs
from crossalign.plan.jobs import Graph, Job, Machines
from crossalign.plan.measured import training_note
from crossalign.plan.rehearsal import measured_alone, one_of_each_kind, rehearsed
from crossalign.plan.work import Sizes, Works


@dataclass(frozen=True)
class Choice:
    """What the user decides: targets, hardware, machines, the line's speed, and whose benchmark files hold.

    `share` is the number of jobs on one GPU, `rehearsal` the folder of a rehearsal's results.
    """

    targets: Sequence[str] = ("all",)
    hardware: str = "h200"
    gpus: int = 1
    cores: int = 8
    mbit: float = 100
    benchmarks: Path | None = None
    share: int = 1
    rehearsal: Path | None = None


@dataclass(frozen=True)
class Totals:
    """Jobs of one rule, or of all. `alone` is the time on GPUs if no two jobs shared one."""

    jobs: int
    left: int
    gpu_seconds: float
    alone: float
    cpu_seconds: float
    bases: tuple[str, ...]


class Estimate:
    """The plan of one config and the jobs behind its targets; `folder` is the working folder, with the results."""

    def __init__(
        self,
        catalog: Catalog,
        graph: Graph,
        registers: tuple[Mapping[str, Dataset], Mapping[str, Model]],
        choice: Choice,
        root: Path,
        folder: Path,
    ) -> None:
        self.choice, self.graph = choice, graph
        self.jobs, self.left = graph.jobs, graph.left
        results = folder / "results" / catalog.config["run"]
        sizes = Sizes(catalog.config, results, root / "resources" / "sizes.tsv", root)
        self.works = Works(catalog, sizes, *registers)
        work = {name: self.works.of(job) for name, job in self.jobs.items()}
        table = dict(read_costs(root / "resources" / "costs.tsv"))
        for rule in ("download_file", "download_labelled", "download_model"):
            table[HOST, rule, ""] = replace(table[HOST, rule, ""], milliseconds=8000 / choice.mbit)
        jobs = list(self.jobs.values())
        ran = measured_alone(rehearsed(choice.rehearsal, jobs), self.jobs)
        foreseen = {name: each.price for name, each in ran.items()}
        known = Prices(table, choice.hardware, work, foreseen)
        took = self._benchmarks(choice.benchmarks) if choice.benchmarks else {}
        measured = {name: Price(s, "benchmark", s * known.of(name).part_idle) for name, s in took.items()}
        prices = Prices(table, choice.hardware, work, measured, foreseen)
        self._prices = {name: prices.of(name) for name in self.jobs}
        self._every = prices.every_job()
        self.made_here = bool(catalog.config.get("world"))

    def _benchmarks(self, folder: Path) -> dict[str, float]:
        """The seconds that jobs took; those of jobs that shared a GPU, or had a CPU in its place, do not count."""
        took = read_benchmarks(folder, self.jobs.values())
        alone = self.choice.share == 1
        notes = {name: training_note(folder.parent, self.jobs[name].benchmark) for name in took}
        on_cpu = {name for name, note in notes.items() if note.get("device") == "cpu"}
        return {
            name: seconds
            for name, seconds in took.items()
            if not self.on_gpu(self.jobs[name]) or (alone and name not in on_cpu)
        }

    def price(self, name: str) -> Price:
        """What a job costs."""
        return self._prices[name]

    def seconds(self, name: str) -> float:
        """How long a job holds what it runs on if it has that for itself, with Snakemake's part."""
        return self._prices[name].seconds + self._every

    def held(self, name: str) -> float:
        """The same where several share a GPU: its part of the time."""
        if not self.on_gpu(self.jobs[name]):
            return self.seconds(name)
        return self._prices[name].shared(self.choice.share) + self._every / self.choice.share

    def totals(self, names: Collection[str] | None = None) -> Totals:
        """Jobs, and the GPU and CPU time of those that are left; a GPU job's time counts for the GPU alone.

        Transfers are neither: they wait for the network.
        """
        chosen = list(self.jobs) if names is None else list(names)
        left = [name for name in chosen if name in self.left]
        gpu = alone = cpu = 0.0
        for name in left:
            job, seconds = self.jobs[name], self._prices[name].seconds
            if self.on_gpu(job):
                gpu += self._prices[name].shared(self.choice.share) * job.gpus
                alone += seconds * job.gpus
            elif not job.rule.startswith("download_"):
                cpu += seconds * min(job.threads, self.choice.cores)
        bases = tuple(sorted({self._prices[name].basis for name in left}))
        return Totals(len(chosen), len(left), gpu, alone, cpu, bases)

    def transfer_seconds(self) -> float:
        """What the downloads that are left take, one after another."""
        return sum(self.seconds(name) for name in sorted(self.left) if self.jobs[name].rule.startswith("download_"))

    def on_gpu(self, job: Job) -> bool:
        """Whether a job takes a GPU on the chosen hardware."""
        return job.gpus > 0 and self.choice.hardware != "cpu"

    def by_rule(self) -> dict[str, Totals]:
        """Totals of every rule, in the order in which jobs come to run."""
        rules: dict[str, list[str]] = {}
        for name, job in self.jobs.items():
            rules.setdefault(job.rule, []).append(name)
        return {rule: self.totals(rules[rule]) for rule in sorted(rules, key=_stage)}

    def by_basis(self) -> dict[str, float]:
        """Seconds of jobs that are left by what they rest on."""
        found: dict[str, float] = {}
        for name in sorted(self.left):
            price = self._prices[name]
            found[price.basis] = found.get(price.basis, 0.0) + price.seconds
        return found

    def one_of_each_kind(self) -> list[str]:
        """Results to ask for so that one job of each kind works on a GPU."""
        return one_of_each_kind(self.graph, lambda job: self.works.of(job).group, self.seconds)

    def critical_path(self) -> list[str]:
        """The longest chain of what is left."""
        return self.graph.critical_path(self.left, self.seconds)

    def wall_time(self, gpus: int | None = None, cores: int | None = None) -> float:
        """Seconds until everything is there, by simulation: jobs that share a GPU one after another, each shorter."""
        gpus = 0 if self.choice.hardware == "cpu" else gpus or self.choice.gpus
        machines = Machines(gpus, cores or self.choice.cores)
        chain = sum(map(self.seconds, self.critical_path()))
        return max(chain, self.graph.wall_time(self.left, self.held, machines))

    def trainings(self) -> list[Job]:
        """The jobs that make a model, whether they are done or not."""
        others = ("evaluate", "embed_sentences", "embed_words")
        return [job for job in self.jobs.values() if job.gpus and job.rule not in others]

    def looked_into(self) -> list[str]:
        """The names of published models whose vectors are taken as they are."""
        jobs = (job for job in self.jobs.values() if job.rule == "embed_sentences")
        return sorted({job.subject.name for job in jobs if isinstance(job.subject, Base)})

    def vector_bytes(self) -> float:
        """The largest folder of vectors that waits to be compared."""
        jobs = (self.jobs[name] for name in self.left)
        return max((self.works.vector_bytes(job) for job in jobs if job.rule == "embed_sentences"), default=0)


_ORDER = ("make_world", "download", "prepare", "align", "train_vocabulary", "pretrain", "adapt", "adjust", "finetune")
_LATER = ("train_bilstm", "evaluate", "embed", "audit", "compare", "measure", "write_config")
_LAST = ("gather_results", "make_table", "make_figure", "make_findings", "make_verdicts")


def _stage(rule: str) -> tuple[int, str]:
    stages = (*_ORDER, *_LATER, *_LAST)
    return next((place for place, stage in enumerate(stages) if rule.startswith(stage)), len(stages)), rule
