"""How far a long loop is: a bar on a terminal, a plain line each minute in a log."""

import contextlib
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator

log = logging.getLogger("meter")

MINUTE = 60.0


@contextlib.contextmanager
def meter(total: int, unit: str, done: int = 0) -> Iterator[Callable[[int], None]]:
    """A function to be told how many of `total` are done; `done` of them were before."""
    if sys.stderr.isatty():
        from tqdm import tqdm
        from tqdm.contrib.logging import logging_redirect_tqdm

        # Lines of the log are written above the bar.
        bar = tqdm(total=total, initial=done, unit=f" {unit}", dynamic_ncols=True, leave=False)
        with bar, logging_redirect_tqdm():
            yield lambda now: bar.update(now - bar.n)
    else:
        start = last = time.monotonic()

        def tell(now: int) -> None:
            nonlocal last
            if (clock := time.monotonic()) - last >= MINUTE and now > done:
                last = clock
                left = (clock - start) / (now - done) * (total - now) / MINUTE
                log.info("%d of %d %s, about %d min left", now, total, unit, math.ceil(left))

        yield tell


def metered(steps: range, unit: str = "steps") -> Iterator[int]:
    """The numbers of the steps that are left, shown as they are done."""
    with meter(steps.stop, unit, steps.start) as tell:
        for step in steps:
            yield step
            tell(step + 1)
