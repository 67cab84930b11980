"""Classify errors as transient or permanent; retry transient ones."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to try on a bad connection."""

    attempts: int = 5  # in a row without real progress
    timeout: float = 60.0  # seconds of silence
    first_wait: float = 1.0  # doubled after each failure
    longest_wait: float = 60.0
    real_progress: int = 1 << 20  # bytes that reset the count of failures
    sleep: Callable[[float], None] = time.sleep


class SourceError(Exception):
    """A permanent error: this source will not give the file, however often it is asked."""


class TransientError(Exception):
    """An error that may pass. `wait` is what the server asked for, in seconds."""

    def __init__(self, text: str, wait: float | None = None):
        super().__init__(text)
        self.wait = wait


def retry(action: Callable[[], Answer], label: str, policy: RetryPolicy, done: Callable[[], int] = lambda: 0) -> Answer:
    """The result of `action`, which is repeated with growing waits after a TransientError. `done` counts bytes."""
    failures, best = 0, done()
    while True:
        try:
            return action()
        except TransientError as error:
            # Counted from the best so far: a server that always starts over cannot keep us busy for ever.
            if done() >= best + policy.real_progress:
                failures, best = 0, done()
            failures += 1
            if failures >= policy.attempts:
                raise SourceError(f"{error} (gave up after {failures} attempts without progress)") from error
            wait = policy.first_wait * 2 ** (failures - 1) if error.wait is None else error.wait
            wait = min(wait, policy.longest_wait)
            print(f"{label}: {error}; trying again in {wait:g} s", file=sys.stderr, flush=True)
            policy.sleep(wait)
