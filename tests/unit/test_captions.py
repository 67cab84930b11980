"""Captions of Snakemake's own report: sound for every item, and of no effect on any job."""

import re
from types import SimpleNamespace

from docutils.core import publish_parts
from jinja2 import Environment

from crossalign.papers.all_items import ITEMS
from crossalign.report.captions import caption_of, name_of, plain

OUTPUT = SimpleNamespace(csv="a/b.csv", tex="a/b.tex", pdf="a/b.pdf", page="results/demo/report/index.html")
DEMO, PAPER = {"run": "demo", "world": "world.yaml"}, {"run": "paper"}
# Full of what reStructuredText takes for markup.
MARKUP = "*all* of `it_ |rises| [1]_"


def render(root, name, config, caption):
    """A caption as Snakemake makes it; markup that docutils cannot read is an error."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    template = (root / "resources" / "captions" / name).read_text(encoding="utf-8")
    told = SimpleNamespace(config=config, output=OUTPUT, params=SimpleNamespace(caption=caption))
    text = environment.from_string(template).render(snakemake=told)
    return publish_parts(text, writer="html", settings_overrides={"halt_level": 2})["body"]


def test_every_item_has_a_sound_caption(root):
    for item in ITEMS:
        template = f"{item.partition('/')[2].rstrip('0123456789')}.rst"
        html = render(root, template, PAPER, caption_of(item))
        assert f"<strong>{name_of(item)}: " in html and "artificial" not in html
        html = render(root, template, DEMO, caption_of(item)._replace(title=plain(MARKUP)))
        assert "artificial" in html and MARKUP in html
    assert all(render(root, name, DEMO, None) for name in ("workflow.rst", "page.rst"))


def test_captions_cause_no_job(root):
    """Snakemake compares only params that are not derived from the output, and code that programs import."""
    for rules in ("tables.smk", "figures.smk"):
        text = (root / "rules" / rules).read_text(encoding="utf-8")
        assert re.search(r"^        caption=lambda wildcards, output: caption_of\(", text, re.MULTILINE)
    sources = [file for file in (root / "scripts").rglob("*.py") if "crossalign.report.captions" in file.read_text()]
    assert sources == []
