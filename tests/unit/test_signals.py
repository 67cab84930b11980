"""A handler that needs what the interrupted program holds."""

import inspect
import os
import signal
import threading

from crossalign.runtime.signals import beside


def test_a_handler_may_want_a_lock_that_is_held():
    lock, done, told = threading.Lock(), threading.Event(), []

    def handle(number, _):
        # A plain handler would wait here for ever; the time makes that a failure.
        if lock.acquire(timeout=5):
            told.append(number)
            lock.release()
        done.set()

    previous = signal.signal(signal.SIGUSR1, beside(handle))
    try:
        with lock:
            os.kill(os.getpid(), signal.SIGUSR1)
        assert done.wait(10)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert told == [signal.SIGUSR1]


def test_snakemake_has_what_is_replaced():
    """crossalign/runtime/workarounds.py; where it is gone or renamed, so may the fault be."""
    from snakemake.scheduling.job_scheduler import JobScheduler

    assert "with self._lock:" in inspect.getsource(JobScheduler.exit_gracefully)
