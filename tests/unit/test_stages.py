"""Seconds by stage."""

import time

from crossalign.runtime.stages import Stages, read_stages


def test_stages_add_up_and_are_read_again():
    started = time.perf_counter()
    stages = Stages()
    time.sleep(0.05)
    stages.end("read")
    stages.end("tokenise")
    time.sleep(0.02)
    stages.end("read")
    passed = time.perf_counter() - started
    assert list(stages.seconds) == ["read", "tokenise"]
    assert stages.seconds["read"] >= 0.07 and sum(stages.seconds.values()) <= passed
    found = read_stages(str(stages))
    assert all(abs(found[name] - seconds) <= 0.005 + 1e-9 for name, seconds in stages.seconds.items())
