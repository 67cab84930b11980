"""Run addresses: what a model is called, and the path at which it lies.

An address is a small frozen record. `path()` turns it into a path below `results/<run>/`, `parse()` turns such a path
back; the two are inverses of each other.
"""

import re
from dataclasses import dataclass

from crossalign.runtime.errors import UserError
from crossalign.tasks.declared import TASKS

# One word: what stands between the separators of a path. Sets may carry suffixes: `ug_udt+latn`, `gsw_uzh+fold1`.
WORD = r"[a-z0-9][a-z0-9._]*(?:-[a-z0-9._]+)*"
SET = r"[a-z0-9]+(?:_[a-z0-9]+)*(?:\+[a-z0-9]+)*"


@dataclass(frozen=True, order=True)
class Base:
    """A model as published, or pretrained from scratch by this workflow."""

    name: str

    def path(self) -> str:
        return f"models/{self.name}"


@dataclass(frozen=True, order=True)
class Adjustment:
    """How a model was pulled together on word-aligned sentences (`adjust`, equation 1)."""

    lang: str
    pairs: str
    aggregation: str
    tokens: str

    def __str__(self) -> str:
        return f"adjust-{self.lang}-{self.pairs}-{self.aggregation}-{self.tokens}"


@dataclass(frozen=True, order=True)
class Mlm:
    """Continued masked language modelling on the raw text of one language (`talk`); `text` may end in `+latn`."""

    text: str

    def __str__(self) -> str:
        return f"mlm-{self.text}"


@dataclass(frozen=True, order=True)
class Adapted:
    """A base model after an adaptation, before any task is learnt."""

    base: str
    adaptation: Adjustment | Mlm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.base}+{self.adaptation}"

    def path(self) -> str:
        return f"models/{self.name}/seed{self.seed}"


@dataclass(frozen=True, order=True)
class Tuned:
    """A model fine-tuned on one task.

    `preset` names an entry of `finetune` in the config, `source` the training set, `init` is `ref`, `random-<layers>`,
    `random-all`, `continual` (its alpha weighs what the config says), `continual-<terms that alpha weighs>`, or that of
    a trial: `grid-<batch>-<learning rate>` for `ref`, with `-random-<layers>` behind it for another. `model` is a
    model's name, without its seed: an adjusted model has the seed of the fine-tuning, all others have one only.
    """

    model: str
    preset: str
    source: str
    init: str
    seed: int

    def path(self) -> str:
        return f"tuned/{self.model}/{self.preset}-{self.source}/{self.init}/seed{self.seed}"

    @property
    def task(self) -> str:
        """The task behind the preset: the last word of its name."""
        return self.preset.rsplit("-", 1)[-1]


Run = Base | Adapted | Tuned

MODEL = rf"{WORD}(?:\+(?:adjust-[a-z]+-\w+-[a-z]+-[a-z]+|mlm-{SET}))?"
PRESET = rf"(?:[a-z0-9]+-)*(?:{'|'.join(TASKS)})"
_RANDOM = r"random-(?:all|\d+(?:-\d+)?)"
_GRID = r"grid-\d+-\d+(?:\.\d+)?e-\d+"
CONTINUAL = "continual(?:-(?:alignment|both))?"
INIT = rf"ref|{CONTINUAL}|{_RANDOM}|{_GRID}(?:-{_RANDOM})?"

_BASE = re.compile(rf"models/(?P<name>{WORD})")
_ADAPTED = re.compile(rf"models/(?P<base>{WORD})\+(?P<adaptation>[^/]+)/seed(?P<seed>\d+)")
_ADJUSTMENT = re.compile(r"adjust-(?P<lang>[a-z]+)-(?P<pairs>\w+)-(?P<aggregation>[a-z]+)-(?P<tokens>[a-z]+)")
_MLM = re.compile(rf"mlm-(?P<text>{SET})")
_TUNED = re.compile(
    rf"tuned/(?P<model>{MODEL})/(?P<preset>{PRESET})-(?P<source>{SET})/(?P<init>{INIT})/seed(?P<seed>\d+)"
)


def parse(path: str) -> Run:
    """The address at `path`, which is relative to `results/<run>/`."""
    if found := _TUNED.fullmatch(path):
        return Tuned(**(found.groupdict() | {"seed": int(found["seed"])}))
    if found := _ADAPTED.fullmatch(path):
        return Adapted(found["base"], parse_adaptation(found["adaptation"]), int(found["seed"]))
    if found := _BASE.fullmatch(path):
        return Base(found["name"])
    raise UserError(
        f"'{path}' is no run address; addresses look like models/mbert, models/mbert+mlm-wo/seed1 "
        "or tuned/mbert/parsing-en_ewt/random-1-2/seed1"
    )


def parse_adaptation(name: str) -> Adjustment | Mlm:
    """The adaptation that the part of a model's name after the `+` stands for."""
    if found := _ADJUSTMENT.fullmatch(name):
        return Adjustment(**found.groupdict())
    if found := _MLM.fullmatch(name):
        return Mlm(found["text"])
    raise UserError(f"'{name}' is no adaptation; they look like adjust-hi-30k-avg-all or mlm-wo")


def model_of(run: Tuned) -> Run | None:
    """The model that a fine-tuning starts from; a BiLSTM starts from nothing."""
    if run.model == "bilstm":
        return None
    base, plus, adaptation = run.model.partition("+")
    if not plus:
        return Base(base)
    made = parse_adaptation(adaptation)
    # One MLM run per language (`talk`); one adjustment per seed (`adjust`, section 5.1).
    return Adapted(base, made, run.seed if isinstance(made, Adjustment) else 1)


def continual_init(scope: str | None = None) -> str:
    """The `init` of continual learning whose alpha weighs `scope`; None: what the config says."""
    return "continual" + (f"-{scope}" if scope else "")


def is_continual(init: str) -> bool:
    """Whether a fine-tuning has the second loss."""
    return re.fullmatch(CONTINUAL, init) is not None


def trial_init(batch: int, rate: float, init: str = "ref") -> str:
    """The `init` of a trial: a fine-tuning from `init` with other settings than its preset's."""
    return f"grid-{batch}-{format_rate(rate)}" + ("" if init == "ref" else f"-{init}")


def trial_of(init: str) -> tuple[int, float, str] | None:
    """Batch size, learning rate and initialisation of a trial; None where `init` is none."""
    found = re.fullmatch(rf"grid-(\d+)-(\d[\d.]*e-\d+)(?:-({_RANDOM}))?", init)
    return (int(found[1]), float(found[2]), found[3] or "ref") if found else None


def format_rate(rate: float) -> str:
    """A learning rate as it stands in an address: 2.5e-5."""
    digits, exponent = f"{rate:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"
