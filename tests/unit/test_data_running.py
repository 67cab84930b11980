"""Readers of running text: what is text stays, in its order; markup, code and headings go."""

import json
import struct

import pytest

from crossalign.data.running import read


def lines(text, reader, option="", **more):
    data = text if isinstance(text, bytes) else text.encode()
    return list(read(data, reader, option, **more))


def test_lines_without_tags_and_headings_of_a_wiki():
    text = '\ufeff<doc id="1" title="x">\r\nFirst  line.\r\n== Part ==\n\n42\nSecond <b>line</b>.\n</doc>\n'
    assert lines(text, "lines") == ["First line.", "Second <b>line</b>."]


def test_characters_are_composed_and_lines_in_another_encoding_left_out():
    assert lines("Cafe\u0301.\n", "lines") == ["Caf\u00e9."]
    assert lines("gut\nschön\n".encode("latin-1"), "lines") == ["gut"]
    assert lines("schön\n".encode("latin-1"), "lines", encoding="latin-1") == ["schön"]


def test_wrapped_paragraphs():
    text = "   It was a dark\nand stormy night.\n   The rain\nfell.\n\nThe end.\n"
    assert lines(text, "paragraphs") == ["It was a dark and stormy night.", "The rain fell.", "The end."]
    # A file with long lines is not wrapped.
    long = "word " * 40
    assert lines(f"{long}\nShort one.\n", "paragraphs") == [long.strip(), "Short one."]


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
    assert lines("\tThe/at jury/nn said/vbd ``/`` no/at ''/'' ./.\n\n", "tagged") == ['The jury said " no ".']
    assert lines("O_ART dia_N ._.", "tagged", "_") == ["O dia."]


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


def catalogue(messages, order="<"):
    """A compiled catalogue as gettext writes it, without its hash table."""
    tables, texts, start = b"", b"", 28 + 16 * len(messages)
    for side in (0, 1):
        for message in messages:
            data = message[side].encode()
            tables += struct.pack(f"{order}2I", len(data), start + len(texts))
            texts += data + b"\0"
    head = struct.pack(f"{order}7I", 0x950412DE, 0, len(messages), 28, 28 + 8 * len(messages), 0, 0)
    return head + tables + texts


@pytest.mark.parametrize("order", ["<", ">"])
def test_catalogue_of_messages(order):
    data = catalogue(
        [
            ("", "Language: de\n"),
            ("speech\x04Hold the <b>gate</b>!", "Haltet das <b>Tor</b>!"),
            ("one day\0$n days", "ein Tag\0$n Tage"),
            ("$name sleeps", "$name schläft"),
            ("First\nsecond", "Erstens\nzweitens"),
        ],
        order,
    )
    assert lines(data, "gettext") == ["Haltet das Tor!", "ein Tag", "Erstens", "zweitens"]
    assert lines(data, "gettext", "source") == ["Hold the gate!", "one day", "First", "second"]
    with pytest.raises(ValueError, match="not a catalogue"):
        lines(b"msgid", "gettext")


def test_books_of_openiti():
    text = (
        "######OpenITI#\n#META# Title: no\n#META#Header#End#\n\n# | باب\n# قال PageV01P002 الشيخ\n~~نعم ms12\n# آخر\n"
    )
    assert lines(text, "openiti") == ["قال الشيخ نعم", "آخر"]


def test_works_of_aozora():
    head = f"題\n作者\n\n{'-' * 55}\n【記号】\n《》：ルビ\n{'-' * 55}\n\n［＃改丁］\n"
    body = "　主人は呼鈴《よびりん》を鳴らして、十六｜歳《さい》。\n「はい」\n\n底本：「全集」\n1990年\n"
    assert lines((head + body).encode("cp932"), "aozora", encoding="cp932") == [
        "主人は呼鈴を鳴らして、十六歳。",
        "「はい」",
    ]
    # Old spelling.
    assert lines(head + "思ひ出してゐる。\n", "aozora") == []
