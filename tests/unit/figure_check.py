"""Whether the texts of a drawn figure can be read: none over another, none cut off at the edge."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text

# Half a point: boxes are a little larger than the ink in them.
TOLERANCE = 0.5


def overlaps(canvas: Canvas) -> list[str]:
    """One sentence per pair of texts that overlap and per text that leaves the picture; empty when all is well."""
    agg = FigureCanvasAgg(canvas)
    agg.draw()
    renderer = agg.get_renderer()
    slack = TOLERANCE * canvas.dpi / 72
    # Of an annotation the words alone: its own method adds the arrow.
    boxes = [(text, Text.get_window_extent(text, renderer)) for text in visible_texts(canvas)]
    found = []
    frame = canvas.bbox
    for text, box in boxes:
        outside = max(frame.x0 - box.x0, frame.y0 - box.y0, box.x1 - frame.x1, box.y1 - frame.y1)
        if outside > slack:
            found.append(f"'{text.get_text()}' is cut off by {outside * 72 / canvas.dpi:.1f} points")
    for (one, a), (other, b) in combinations(boxes, 2):
        width = min(a.x1, b.x1) - max(a.x0, b.x0)
        height = min(a.y1, b.y1) - max(a.y0, b.y0)
        if width > slack and height > slack:
            found.append(f"'{one.get_text()}' and '{other.get_text()}' overlap")
    return found


def visible_texts(canvas: Canvas) -> list[Text]:
    """Every text that is drawn; labels of ticks beyond the axes are not."""
    hidden: set[int] = set()
    for axes in canvas.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            edge = (high - low) * 1e-6
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                if not low - edge <= tick.get_loc() <= high + edge:
                    hidden |= {id(tick.label1), id(tick.label2)}
    texts = canvas.findobj(Text)
    return [text for text in texts if text.get_visible() and text.get_text().strip() and id(text) not in hidden]
