"""Parallel sentences: nothing may fall out of step."""

import io

import pytest

from crossalign.data.parallel import first_rows, read_column, read_extension, read_pud
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError


def lines(text):
    return io.StringIO(text, newline="\n")


def sentence(text):
    return f"{text}\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


def test_treebank_texts_in_order():
    text = sentence("# text = B  b.") + sentence("# sent_id = a\n# text = A\u00a0a.")
    assert list(read_pud(lines(text), "p")) == ["B b.", "A a."]
    with pytest.raises(UserError, match="p: sentence s7 has no '# text' comment"):
        list(read_pud(lines(sentence("# sent_id = s7")), "p"))


def test_hypotheses_are_detokenised():
    text = "premise\thypo\tlabel\nx\tIt 's good , isn 't it ?\tneutral\nx\tYes &amp; no .\tneutral\n"
    assert list(read_extension(lines(text), "e", "en")) == ["It's good, isn't it?", "Yes & no."]
    with pytest.raises(UserError, match="e, line 2: an empty hypothesis"):
        list(read_extension(lines("hypo\n \n"), "e", "en"))


def test_one_column_of_many():
    assert list(read_column(lines("en\tfr\nyes\toui\nno\tnon\n"), "t", "fr")) == ["oui", "non"]
    with pytest.raises(UserError, match="t, line 1: no column de; the header has 'en fr'"):
        list(read_column(lines("en\tfr\n"), "t", "de"))
    with pytest.raises(UserError, match="t, line 3: an empty sentence in column 'fr'"):
        list(read_column(lines("en\tfr\na\tb\nc\t\n"), "t", "fr"))


def test_rows_are_counted_and_must_be_there():
    report = Report()
    assert list(first_rows("abcd", 3, "t", report)) == ["a", "b", "c"]
    assert report.as_dict()["dropped"] == {"after the rows asked for": 1}
    assert list(first_rows("abcd", 0, "t", Report())) == list("abcd")
    with pytest.raises(UserError, match=r"t: 4 rows, but 5 are asked for \(--rows\)"):
        list(first_rows("abcd", 5, "t", Report()))
