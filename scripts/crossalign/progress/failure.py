"""What is said of a job that failed: the rule, what it was for, and the end of its log."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from crossalign.progress.words import item_words
from crossalign.runtime.errors import UserError

LINES = 12
ITEMS = 3


def failure(rule: str, words: str, outputs: Iterable[str], logs: Iterable[str], results: Path) -> Iterator[str]:
    """The lines about one failed job."""
    # Read first: a job that is started again writes its log anew.
    ends = {log: tail(Path(log)) for log in logs}
    yield f"Failed: {words} (rule {rule})"
    if items := items_behind(results / "config.json", set(outputs)):
        more = f" and {len(items) - ITEMS} more" if len(items) > ITEMS else ""
        yield f"  needed for {', '.join(map(item_words, items[:ITEMS]))}{more}"
    for log, end in ends.items():
        yield f"  {log}:" if end else f"  nothing in {log}"
        yield from (f"    {line}" for line in end)


def items_behind(config: Path, outputs: set[str]) -> list[str]:
    """The tables and figures of a run that need one of some files; none where that cannot be worked out."""
    # Slow to load, and needed for failures alone.
    from crossalign.papers.all_items import catalog_of
    from crossalign.papers.common.command import read_config
    from crossalign.plan.jobs import planned

    try:
        catalog = catalog_of(read_config(config))
        graph = planned(catalog)
    except (UserError, KeyError):
        return []
    makers = {graph.maker[file] for file in outputs if file in graph.maker}

    @cache
    def needs(name: str) -> bool:
        return name in makers or any(map(needs, graph.needs[name]))

    items = {job.subject: name for name, job in graph.jobs.items() if job.rule in ("make_table", "make_figure")}
    return [item for item in catalog.items if makers and needs(items[item])]


def tail(log: Path, lines: int = LINES) -> list[str]:
    """The last lines of a log that are not empty."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - 64_000))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip()[:300] for line in text.splitlines() if line.strip()][-lines:]
