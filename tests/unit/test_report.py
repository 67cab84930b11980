"""The page as a file: what enters it and how, what a partial run shows, and what the program says."""

import base64
import csv
import hashlib
import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made_report import NASTY, make_run

from crossalign.catalog.remake import command_of
from crossalign.papers.all_items import ITEMS
from crossalign.report.differences import differences
from crossalign.report.escape import attributes, inline_json, link
from crossalign.report.fragments import ELEMENTS, clean, read_fragment
from crossalign.report.gather import gather
from crossalign.report.page import page
from crossalign.report.pictures import read_picture
from crossalign.runtime.errors import UserError

MADE = ["align-predict/table1", "align-predict/figure1", "anc/figure1"]


@pytest.fixture(scope="module")
def partial(root, tmp_path_factory):
    """A demo run of which three items are made: the folder of its results."""
    folder = tmp_path_factory.mktemp("partial")
    make_run(folder, root, MADE)
    return folder / "results" / "demo"


@pytest.fixture(scope="module")
def shown(partial):
    config = json.loads((partial / "config.json").read_text(encoding="utf-8"))
    report = gather(config, partial, partial / "report" / "index.html")
    return report, page(report)


class Elements(HTMLParser):
    """Collects the elements of a page, with their attributes."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_inline_json_cannot_end_its_element_and_keeps_what_it_says(data):
    content = inline_json(data)
    assert not set("<>&\u2028\u2029") & set(content)
    assert json.loads(content) == data


def test_inline_json_refuses_what_is_no_json():
    with pytest.raises(ValueError):
        inline_json(float("nan"))


def test_attributes_are_quoted_and_left_out_when_empty():
    assert attributes(class_="a b", data_x='"<', title="", hidden=None) == ' class="a b" data-x="&quot;&lt;"'


def test_a_link_never_has_a_scheme():
    assert link("javascript:alert(1)") == "./javascript%3Aalert%281%29"
    assert link("../tables/anc/table1.csv") == "../tables/anc/table1.csv"


@given(st.text(alphabet='<>/"=abdeilnoprtv &;!-', max_size=60) | st.text(max_size=40))
def test_only_known_elements_pass_and_all_are_closed(fragment):
    cleaned = clean(fragment)
    tags = re.findall(r"<(/?)([a-z0-9]+)[^>]*>", cleaned)
    open_elements = []
    for slash, tag in tags:
        assert tag in ELEMENTS
        if slash:
            assert open_elements.pop() == tag
        else:
            open_elements.append(tag)
    assert not open_elements
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("<td onclick='x()' class=a style='color:red'>1</td>", '<td class="a">1</td>'),
        ("<p>a<script>b</script>c", "<p>a&lt;script&gt;bc</p>"),
        ('<img src=x onerror="y">', "&lt;img src=x onerror=&quot;y&quot;&gt;"),
        ('<td id="papers" data-value="1" data-item="x">1', '<td data-value="1">1</td>'),
        ("<figure><figcaption>title <b>x</b></figcaption><p>body</p></figure>", "<p>body</p>"),
    ],
)
def test_what_is_not_known_becomes_text_or_goes(fragment, expected):
    assert clean(fragment) == expected


def test_tables_of_our_own_pass_unchanged_but_for_their_frame(partial):
    path = partial / "tables/align-predict/table1.html"
    inside = read_fragment(path)
    original = path.read_text(encoding="utf-8")
    assert html.unescape(inside).count(NASTY) >= 2
    assert inside.count("<td") == original.count("<td") == 32
    assert "<script" not in inside and "<img" not in inside


def test_a_file_without_a_table_is_named(tmp_path):
    path = tmp_path / "table1.html"
    path.write_text("nothing", encoding="utf-8")
    with pytest.raises(UserError, match=r"table1\.html: there is no table .* make the item again"):
        read_fragment(path)


@pytest.mark.parametrize("content", ["", "<svg viewBox='no'></svg>", '<svg viewBox="0 0 10 10"><g>'])
def test_half_a_picture_is_named(tmp_path, content):
    path = tmp_path / "figure1.svg"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"figure1\.svg: not a whole SVG picture"):
        read_picture(path)


def test_a_picture_keeps_its_drawing_and_loses_what_readers_do_not_see(tmp_path):
    path = tmp_path / "figure1.svg"
    drawing = '<path d="M 0 0\nL 1 1"/><text>a b</text>'
    head = '<?xml version="1.0"?><!DOCTYPE svg><svg width="20pt" viewBox="0 0 20 10.5"><metadata><a/></metadata>'
    path.write_text(f"{head}{drawing}</svg>\n", encoding="utf-8")
    picture = read_picture(path)
    assert (picture.width, picture.height) == (20, 10.5)
    kind, _, data = picture.address.partition(",")
    assert kind == "data:image/svg+xml;base64"
    kept = base64.b64decode(data).decode()
    assert kept == '<svg width="20pt" viewBox="0 0 20 10.5"><path d="M 0 0 L 1 1"/><text>a b</text></svg>'


def test_every_item_is_shown_and_those_not_made_name_their_command(shown):
    _, content = shown
    items = [found for tag, found in Elements(content).found if tag == "article"]
    assert [found["data-item"] for found in items] == list(ITEMS)
    assert [found["data-item"] for found in items if found["data-state"] == "made"] == MADE
    for item in ITEMS:
        folder, form = ("tables", "html") if "/table" in item else ("figures", "svg")
        again = "--force " if item in MADE else ""
        assert f"snakemake --profile profiles/demo {again}results/demo/{folder}/{item}.{form}</code>" in content


def test_what_was_made_from_some_of_its_runs_says_so(root, tmp_path):
    config = make_run(tmp_path, root, MADE)
    results = tmp_path / "results" / "demo"
    table = results / f"tables/{MADE[0]}.csv"
    rows = list(csv.DictReader(table.open(encoding="utf-8", newline="")))
    rows[0]["missing"] = "tuned/mbert/parsing-en_ewt/ref/seed2"
    with table.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    report = gather(config, results, results / "report" / "index.html")
    assert report.states == {"made": len(MADE) - 1, "in part": 1, "not made yet": 48 - len(MADE), "left out": 0}
    content = page(report)
    assert f"<b>{len(MADE) - 1}</b> of 48 made" in content and "(in part)" in content
    assert "Made in part." in content and 'data-state="in part"' in content


def test_commands_of_other_runs():
    item = "anc/table1"
    assert command_of(item, {"run": "paper"}, False) == (
        "snakemake --profile profiles/gpu results/paper/tables/anc/table1.html"
    )
    assert command_of(item, {"run": "mine"}, True) == (
        "snakemake --profile profiles/gpu --configfile results/mine/config.json --force "
        "results/mine/tables/anc/table1.html"
    )


def test_the_command_of_the_small_run_finds_its_mirror():
    assert command_of("adjust/figure1", {"run": "small"}) == (
        "snakemake --profile profiles/small --configfile results/small/config.json "
        "results/small/figures/adjust/figure1.svg"
    )


def test_the_page_needs_nothing_from_outside(shown):
    _, content = shown
    for tag, found in Elements(content).found:
        values = [found[name] for name in ("src", "href", "srcset", "action", "data", "style") if found.get(name)]
        for value in values:
            assert value.startswith(("#", "data:image/svg+xml;base64,", "../", "provenance.json")), (tag, value)
        assert not [name for name in found if name.startswith("on")], (tag, found)


def test_files_are_linked_relative_to_the_page_and_are_there(shown, partial):
    _, content = shown
    links = [found["href"] for tag, found in Elements(content).found if tag == "a" and found["href"].startswith("../")]
    assert len(links) == 3 + 4 + 4
    assert all((partial / "report" / name).resolve().is_file() for name in links)


def test_the_policy_allows_the_page_s_own_script_and_style_alone(shown):
    _, content = shown
    policy = next(found["content"] for _, found in Elements(content).found if "http-equiv" in found)
    scripts = re.findall(r"<script>(.*?)</script>", content, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", content, re.DOTALL)
    assert len(scripts) == len(styles) == 1
    for name, inner in (("script-src", scripts[0]), ("style-src", styles[0])):
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_nothing_harmful_is_an_element(shown):
    _, content = shown
    found = Elements(content).found
    assert [tag for tag, _ in found].count("script") == 2
    assert all(found["src"].startswith("data:image/svg+xml") for tag, found in found if tag == "img")
    assert "<script>alert" not in content and "<img src=x" not in content


def test_claims_are_counted_on_the_first_screen(shown):
    _, content = shown
    assert "<b>4</b> of 12 judged claims hold" in content
    assert 'aria-label="Claims: 4 holds, 4 does not hold, 4 unclear, 4 not run, 4 cannot be checked"' in content
    assert "<b>3</b> of 48 made" in content


def run_program(root, *args):
    command = [sys.executable, str(root / "scripts/make_report.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_program_writes_the_page_and_says_what_is_in_it(root, partial, tmp_path):
    out = tmp_path / "report" / "index.html"
    done = run_program(root, "--results", partial, "--config", partial / "config.json", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "claims: 4 of 12 judged hold",
        "tables and figures: 3 of 48 made",
        f"page: {out}",
    ]
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads(out.with_name("provenance.json").read_text(encoding="utf-8"))["items"].keys() == ITEMS.keys()


def test_a_run_of_which_nothing_is_made_still_has_a_page(root, tmp_path):
    config = make_run(tmp_path, root, [])
    results = tmp_path / "results" / config["run"]
    (results / "claims.csv").unlink()
    out = results / "report" / "index.html"
    done = run_program(root, "--results", results, "--config", results / "config.json", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "claims: 0 of 0 judged hold\ntables and figures: 0 of 48 made" in done.stdout
    assert "nothing is made yet" in out.read_text(encoding="utf-8")


def test_the_program_says_what_is_missing(root, partial, tmp_path):
    done = run_program(root, "--results", tmp_path / "no", "--config", partial / "config.json", "--out", tmp_path / "x")
    assert done.returncode == 1
    assert re.fullmatch(r"error: --results .*/no: no such folder; .*\n", done.stderr)


def test_what_differs_from_the_papers_is_shown_by_section(tmp_path):
    path = tmp_path / "differences.md"
    assert differences(path) == ""
    lines = ["# Title", "Words.", "## `anc` & more", "| there | here |", "|---|:--|"]
    lines += ["| a <b> | `x\\|y` [docs](data.md) |", "", "## Empty", "No table."]
    path.write_text("\n".join(lines), encoding="utf-8")
    shown = differences(path)
    assert shown.count("<details") == 1
    assert "<summary><code>anc</code> &amp; more (1)</summary>" in shown
    assert "<td>a &lt;b&gt;</td><td><code>x|y</code> docs</td>" in shown
