"""A figure's files: SVG, PDF, PNG, and the data behind it as CSV."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from crossalign.papers.common.figure import COLUMNS, Figure
from crossalign.runtime.files import write_atomic

# No dates and no versions: equal data give equal bytes.
METADATA = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def write_figure(figure: Figure, paths: Mapping[str, str | Path]) -> None:
    """Write the formats that are keys of `paths`: svg, pdf, png, csv. Equal data give equal bytes."""
    if "csv" in paths:
        write_data(figure, paths["csv"])
    pictures = {name: path for name, path in paths.items() if name in METADATA}
    if not pictures:
        return
    # Drawing is for those who draw: reading the data of a figure does not load matplotlib.
    from matplotlib import rc_context

    from crossalign.papers.common.draw import STYLE, draw

    canvas = draw(figure)
    for name, path in pictures.items():
        buffer = io.BytesIO()
        with rc_context(STYLE):
            canvas.savefig(buffer, format=name, metadata=METADATA[name] | title(figure, name))
        with write_atomic(path, "wb") as stream:
            stream.write(buffer.getvalue())


def title(figure: Figure, form: str) -> dict[str, str]:
    """The title goes into the file's own description; in the picture it would fight with a caption."""
    return {"Title": f"{figure.item}: {figure.title}"} if form != "png" else {}


def write_data(figure: Figure, path: str | Path) -> None:
    """The points as tidy CSV."""
    with write_atomic(path) as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(figure.tidy())
