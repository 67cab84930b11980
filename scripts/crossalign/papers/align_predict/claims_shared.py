"""What the claims of `align-predict` share: its tables and figures, its languages, and whether a task was learnt."""

from crossalign.results.claims.quantities import Quantity, cells

PAPER = "align-predict"
T1, T2, T3, T4, T5, T6 = (f"{PAPER}/table{place}" for place in range(1, 7))
F1, F3, F4, F5 = (f"{PAPER}/figure{place}" for place in (1, 3, 4, 5))
RANDOM = [f"{PAPER}/figure{place}" for place in (6, 7, 8)]
# The languages of the study, and those whose curves are drawn.
STUDIED, SHOWN = f"{PAPER}.languages", f"{PAPER}.similarity_languages"
# As figures name them, and within a sentence.
TASKS = {"parsing": "Parsing", "pos": "POS", "ner": "NER"}
WORDS = TASKS | {"parsing": "parsing"}
SOURCES = {"en": "English", "ru": "Russian", "ar": "Arabic"}


def learnt(task: str, source: str = "en", item: str = T1) -> tuple[str, Quantity]:
    """The scores of the unchanged models: in their own language, and elsewhere on average."""
    return task, cells(item, ("target",), task=task, source=source, target=[source, "X"], layers="ref")
