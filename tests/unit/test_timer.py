"""At most one call waits."""

import threading
import time

from crossalign.runtime.timer import OneTimer


def test_many_wishes_are_one_call():
    calls = []
    wish = OneTimer(lambda: calls.append(time.monotonic()))
    begin = time.monotonic()
    for _ in range(100):
        wish(0.2)
    assert sum(isinstance(thread, threading.Timer) for thread in threading.enumerate()) <= 1
    time.sleep(0.5)
    assert len(calls) == 1
    assert calls[0] - begin >= 0.2


def test_a_call_may_ask_for_the_next():
    """As a scheduler does that looks for work again and again."""
    calls = []
    done = threading.Event()

    def look():
        calls.append(None)
        if len(calls) < 3:
            wish(0.01)
        else:
            done.set()

    wish = OneTimer(look)
    wish(0.01)
    assert done.wait(5)
    wish(0.01)
    time.sleep(0.3)
    assert len(calls) == 4


def test_snakemake_has_what_is_replaced():
    """crossalign/runtime/workarounds.py; where it is gone or renamed, so may the fault be."""
    from snakemake.scheduling.job_scheduler import JobScheduler

    assert "delay" in JobScheduler._schedule_reevalutation.__annotations__
    assert "_open_jobs" in JobScheduler._schedule_reevalutation.__code__.co_consts[1].co_names
