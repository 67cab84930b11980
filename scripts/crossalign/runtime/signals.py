"""Handlers of signals that cannot wait for what they have interrupted."""

import _thread
from collections.abc import Callable
from typing import Any


def beside(handler: Callable[..., None]) -> Callable[..., None]:
    """A handler that does its work in a thread of its own.

    A handler interrupts the main thread: if it waits for a lock that the main thread holds, it waits for ever.
    """

    def start(*arguments: Any) -> None:
        # Not threading.Thread: that has locks too.
        _thread.start_new_thread(handler, arguments)

    return start
