"""Figures enter the page as images: a browser runs no script of an image and lets it fetch nothing."""

import base64
import re
from dataclasses import dataclass
from pathlib import Path

from crossalign.runtime.errors import UserError

_BOX = re.compile(r'<svg[^>]*\sviewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"')
# What the drawing program adds for others than the reader.
_NEEDLESS = re.compile(r"<\?xml.*?\?>|<!DOCTYPE[^>]*>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """An SVG as a data address, with its size in points."""

    address: str
    width: float
    height: float


def read_picture(path: Path) -> Picture:
    """The picture in a file."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no picture that can be read ({error}); make the item again") from None
    box = _BOX.search(content)
    if box is None or not content.rstrip().endswith("</svg>"):
        raise UserError(f"{path}: not a whole SVG picture with a viewBox; delete it and make the item again")
    slim = re.sub(r"\s+", " ", _NEEDLESS.sub("", content)).strip()
    data = base64.b64encode(slim.encode("utf-8")).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{data}", float(box["width"]), float(box["height"]))
