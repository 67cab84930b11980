"""Errors that are the user's to mend, told in one sentence instead of a traceback."""

import sys
from collections.abc import Callable


class UserError(Exception):
    """Bad input, settings or surroundings. The text names what is at fault and what would be right."""


# How libraries that raise no MemoryError speak of memory.
_NO_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc")


def run_main(main: Callable[[], None]) -> None:
    """Run a program; a UserError or a lack of memory ends it with `error: …` on standard error and status 1."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        # A GPU's memory is a matter of its own: runtime/gpus.py.
        if isinstance(error, RuntimeError) and not any(words in str(error) for words in _NO_MEMORY):
            raise
        print(
            f"error: no memory left on this machine; run fewer jobs at a time (--cores), or give them more ({error})",
            file=sys.stderr,
        )
        sys.exit(1)
