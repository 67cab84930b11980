"""Coalesces repeated requests into one pending call."""

import threading
from collections.abc import Callable


class OneTimer:
    """Calls `function` after a delay. While a call is waiting no other one is; a program's end does not wait for it."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._waiting = False

    def __call__(self, delay: float) -> None:
        """Ask for a call in `delay` seconds."""
        with self._lock:
            if self._waiting:
                return
            self._waiting = True
        timer = threading.Timer(delay, self._call)
        timer.daemon = True
        timer.start()

    def _call(self) -> None:
        with self._lock:
            self._waiting = False
        self._function()
