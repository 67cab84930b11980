"""What can be said of each model of a study: the papers' claims on mBERT, asked of it.

Models are those of the config, so the claims are a function of it.
"""

from collections.abc import Iterator
from functools import partial

from crossalign.catalog.studied import layer_sets, studied
from crossalign.papers.study.items import PAPER, others, tasks
from crossalign.results.claims.claim import FIELDS, Claim, claim
from crossalign.results.claims.curves import curve
from crossalign.results.claims.groups import every
from crossalign.results.claims.predicates import at_least, at_most, correlates, greater
from crossalign.results.claims.quantities import Quantity, cell, cells, largest, together
from crossalign.results.claims.shapes import rises_then_falls
from crossalign.results.names import TASKS, init
from crossalign.results.names import model as model_name

T2, T4, F1, F6 = f"{PAPER}/table2", f"{PAPER}/table4", f"{PAPER}/figure1", f"{PAPER}/figure6"
harmless = partial(at_least, bound="harmless", sign=-1)


def change(model: str, task: str, group: str, layers: str) -> Quantity:
    """What the score of a task loses when layers are drawn anew."""
    return cell(T2, task=task, model=model, target=group, layers=layers, kind="delta")


def learnt(model: str, task: str) -> dict[str, Quantity]:
    """The scores of the model as pretrained."""
    return {task: cells(T2, ["target"], task=task, model=model, target=["source", "seen"], part="ref")}


def of_model(config: dict, model: str) -> Iterator[tuple[str, str, Claim]]:
    """Name, statement and declaration of each claim on one model."""
    name, parts = model_name(model), list(layer_sets(config, model).values())
    lowest, highest = (init(f"random-{layers}") for layers in (parts[0], parts[-1]))
    for task in tasks(config):
        home, elsewhere = (change(model, task, group, parts[0]) for group in ("source", "seen"))
        yield (
            f"lower-{task}",
            f"{name} first aligns: without its {lowest}, {TASKS[task]} loses more in other languages than in English",
            claim(
                T2,
                f"re-initialising {lowest} costs {{elsewhere:cost}} points elsewhere and {{home:cost}} in English",
                greater("home", "elsewhere"),
                learnt=learnt(model, task),
                elsewhere=elsewhere,
                home=home,
            ),
        )
    upper = {
        f"{TASKS[task]} {words}": change(model, task, group, parts[-1])
        for task in tasks(config)
        for group, words in (("source", "in English"), ("seen", "elsewhere"))
    }
    yield (
        "upper",
        f"{name} then predicts: {highest} can start at random without harm, in English and elsewhere",
        claim(
            T2,
            f"re-initialising {highest} changes {{upper:+}} points",
            every("upper", harmless),
            learnt={each: scores for task in tasks(config) for each, scores in learnt(model, task).items()},
            upper=together(**upper),
        ),
    )
    for index in ("CKA", "ANC"):
        yield (
            f"middle-{index.lower()}",
            f"languages meet in the middle of {name}: {index} with English rises and falls again",
            claim(
                F1,
                f"{index}, mean over the languages, is largest at {{curve}}",
                rises_then_falls("curve"),
                shape=True,
                curve=curve(F1, name, index),
            ),
        )
    # Two languages have no rank correlation worth the name.
    for task in tasks(config) if len(others(config)) > 2 else ():
        found = {"task": task, "model": model, "index": "cka"}
        rho, p = cell(T4, "correlation", **found, metric="spearman"), cell(T4, "p", **found, metric="p")
        yield (
            f"rho-{task}",
            f"the more a language resembles English in {name}, the better {TASKS[task]} transfers to it",
            claim(T4, "rho = {rho}, p {p}", correlates("rho", "p"), learnt=learnt(model, task), rho=rho, p=p),
        )
    yield (
        "neurons",
        f"no single neuron of {name} holds half of the variance of a layer, so CKA speaks of the whole layer",
        claim(
            F6,
            "the largest neuron holds a share of {most} at most",
            at_most("most", 0.5),
            most=largest(together(layers=curve(F6, name, "Variance of the largest neuron"))),
        ),
    )


def claims_of(config: dict) -> list[tuple[dict[str, str], Claim]]:
    """Every claim with its row, as claims.csv of a paper has them."""
    empty = dict.fromkeys(FIELDS, "")
    return [
        (empty | {"id": f"{model}-{name}", "statement": statement}, declared)
        for model in studied(config)
        for name, statement, declared in of_model(config, model)
    ]


CLAIMS = claims_of
