"""POS tagging."""

from pathlib import Path

from crossalign.data.conllu import UPOS
from crossalign.tasks.base import Record
from crossalign.tasks.records import read_trees
from crossalign.tasks.tagging import TaggingTask


class PosTask(TaggingTask):
    """Universal part-of-speech tags; the set is fixed."""

    name = "pos"
    metric = "accuracy"
    words_key, tags_key = "words", "upos"
    fixed_labels = tuple(sorted(UPOS - {"_"}))

    def read(self, path: str | Path) -> list[Record]:
        return read_trees(path, parsed=False)
