"""Tab-separated files with a header and no quoting: a quote is a character like any other."""

from collections.abc import Iterable, Iterator, Sequence

from crossalign.data.lines import numbered, shown, wrong
from crossalign.runtime.errors import UserError


def read_table(
    lines: Iterable[str], name: str, wanted: Sequence[str | tuple[str, ...]]
) -> Iterator[tuple[int, list[str]]]:
    """The `wanted` columns of every row with its line number, in the order asked for.

    A column may be given as several names, of which the header has one.
    """
    rows = numbered(lines, name)
    _, header_line = next(rows, (0, ""))
    header = header_line.split("\t")
    places = [_place(header, names if isinstance(names, tuple) else (names,), name) for names in wanted]
    width = len(header)
    for number, line in rows:
        fields = line.split("\t")
        if len(fields) != width:
            raise wrong(name, number, f"{len(fields)} fields where the header has {width}: {shown(line)}")
        yield number, [fields[place] for place in places]


def _place(header: list[str], names: tuple[str, ...], name: str) -> int:
    for candidate in names:
        if candidate in header:
            return header.index(candidate)
    raise UserError(f"{name}, line 1: no column {' or '.join(names)}; the header has {shown(' '.join(header), 200)}")
