"""Errors that are the user's to mend, told in one sentence instead of a traceback."""

import sys
from collections.abc import Callable


class UserError(Exception):
    """Bad input, settings or surroundings. The text names what is at fault and what would be right."""


# Called when a program has done its work.
AT_GOOD_END: list[Callable[[], None]] = []


def run_main(main: Callable[[], None]) -> None:
    """Run a program; a UserError ends it with `error: …` on standard error and status 1."""
    try:
        main()
        for finish in AT_GOOD_END:
            finish()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
