"""Numbers that a table holds as text stand in their column like measured ones."""

import pytest

from crossalign.papers.common.table import Cell
from crossalign.papers.common.table_html import shown


@pytest.mark.parametrize(
    "text, kind",
    [("−12.43", "fact numeral"), ("+0.21", "fact numeral"), ("123,850,752", "fact numeral"), ("–", "fact numeral"),
     ("pretrained by this run", "fact"), ("1-3", "fact"), ("32 / 5e-5", "fact")],
)  # fmt: skip
def test_a_fact_that_is_a_number_is_aligned_like_one(text, kind):
    assert shown(Cell({"model": "a"}, text=text, fact=True), "")["class"] == kind
