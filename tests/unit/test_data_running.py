"""Readers of running text: what is text stays, in its order; markup, code and headings go."""

import json

import pytest

from crossalign.data.running import read


def lines(text, reader, option=""):
    data = text if isinstance(text, bytes) else text.encode()
    return list(read(data, reader, option))


def test_lines_without_tags_and_headings_of_a_wiki():
    text = '\ufeff<doc id="1" title="x">\r\nFirst  line.\r\n== Part ==\n\n42\nSecond <b>line</b>.\n</doc>\n'
    assert lines(text, "lines") == ["First line.", "Second <b>line</b>."]


def test_characters_are_composed_and_lines_in_another_encoding_left_out():
    assert lines("Cafe\u0301.\n", "lines") == ["Caf\u00e9."]
    assert lines("gut\nschön\n".encode("latin-1"), "lines") == ["gut"]


def test_markdown():
    text = """---
title: No text
---
# Heading

A paragraph with *stress*, `code`, a [link](https://example.org/a_b) and a [second][1],
which goes on here.[^2] Authors\\*of it
<!-- a
comment -->
* First item
* Second item,
  longer ![picture](x.png)

1. A number

> Quoted.

```sh
echo no
```

| a | table |
|---|---|

Underlined heading
==================

{{< note >}}Kept &amp; plain snake_case.{{< /note >}}

[1]: https://example.org
"""
    assert lines(text, "markdown") == [
        "A paragraph with stress, code, a link and a second, which goes on here. Authors*of it",
        "First item",
        "Second item, longer",
        "A number",
        "Quoted.",
        "Kept & plain snake_case.",
    ]


def test_elements_of_html():
    text = """<!DOCTYPE html><html><head><title>No</title><script>var p = "<p>no</p>";</script></head>
<body><nav><p>no</p></nav><h1>No <p>heading</p></h1>
<div><P class="a">One <b>two</b> &amp;<br/>three<p>Four, after a paragraph without an end.</p></div>
outside <ul><li>five <p>six</p> seven</li></ul><!-- <p>no</p> --><p/>outside</body></html>"""
    found = lines(text, "elements", "p,li")
    assert found == ["One two & three", "Four, after a paragraph without an end.", "five", "six", "seven"]


def test_elements_of_tei_with_wrong_tags():
    text = """<?xml version="1.0"?><TEI><teiHeader><p>no</p></teiHeader><text><body>
<div><publisher><head>I</head><sp><speaker>Anna</speaker><l>Wer kommt?</l><l>Niemand.</l></sp>
<p>A novel<note n="1">no</note> <hi>goes</hi> on.</p></publisher></div></body></text>"""
    assert lines(text, "elements", "p,l") == ["Wer kommt?", "Niemand.", "A novel goes on."]


def test_words_of_a_treebank_become_running_text():
    text = '<s n="0"><w pos="NN">Guete</w>\n  <w>Tag</w> <w>(</w> <w>alli</w> <w>)</w> <w>!</w></s>'
    assert lines(text, "elements", "s") == ["Guete Tag (alli)!"]


def test_comments_of_a_treebank():
    text = "# sent_id = 1\n# text = no be am //\n# text_ortho = No be am.\n1\tno\n\n# text_ortho = I dey.\n"
    assert lines(text, "comments", "text_ortho") == ["No be am.", "I dey."]


def test_values_of_json_and_of_json_lines():
    law = {"title": "no", "parts": [{"content": "Kull min\njista' jagħmel dan.\n1) wieħed;\ntnejn"}, {"content": 3}]}
    assert lines(json.dumps(law), "values", "content") == ["Kull min jista' jagħmel dan.", "1) wieħed;", "tnejn"]
    rows = '{"premise": "Satu.", "label": "e"}\n\n{"premise": "Dua."}\n'
    assert lines(rows, "values", "premise") == ["Satu.", "Dua."]


def test_column_of_a_table():
    assert lines("id\tsentence\n1\tOne.\n\n2\tTwo.\tmore\n", "column", "sentence") == ["One.", "Two."]
    with pytest.raises(ValueError, match="'sentence' is not in list"):
        lines("id\ttext\n1\tOne.\n", "column", "sentence")
