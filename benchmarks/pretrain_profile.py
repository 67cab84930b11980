"""What a pretraining step spends its time on: its kernels by name, longest first."""

import time
from collections.abc import Callable, Iterable

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity
from torch.profiler import profile as profiler

ROWS = 40
STEPS = 3


def kernels(step: Callable[[int], None], device: torch.device) -> list[str]:
    """Lines of a table over `STEPS` calls of `step(number)`, captured graphs included; on a CPU its operators."""
    cuda = device.type == "cuda"
    activity = ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU
    with profiler(activities=[activity]) as found:
        started = time.perf_counter()
        for number in range(STEPS):
            step(number)
        if cuda:
            torch.cuda.synchronize()
        wall = 1000 * (time.perf_counter() - started) / STEPS
    spent: dict[str, list[float]] = {}
    for event in found.key_averages():
        took = event.self_device_time_total if cuda else event.self_cpu_time_total
        # With CUDA alone the list also holds what the host did, which has no time on the device.
        if took > 0:
            row = spent.setdefault(event.key, [0.0, 0.0])
            row[0] += took / 1000 / STEPS
            row[1] += event.count / STEPS
    total = sum(took for took, _ in spent.values())
    lines = [
        f"a step under the profiler: {wall:.1f} ms; its {len(spent)} kinds of kernels together: {total:.1f} ms "
        "(more than the step where two streams run beside each other)",
        "| ms per step | share, % | times | ms each | kernel |",
        "|---|---|---|---|---|",
    ]
    for name, (took, times) in sorted(spent.items(), key=lambda item: -item[1][0])[:ROWS]:
        share = 100 * took / max(total, 1e-9)
        each = took / max(times, 1e-9)
        lines.append(f"| {took:.2f} | {share:.1f} | {times:.0f} | {each:.4f} | {shorten(name)} |")
    return lines


def busy_seconds(step: Callable[[int], None], steps: int) -> float:
    """Seconds per step in which the GPU ran at least one kernel or copy; streams beside each other count once."""
    with profiler(activities=[ProfilerActivity.CUDA]) as found:
        for number in range(steps):
            step(number)
        torch.cuda.synchronize()
    return covered(
        (event.time_range.start, event.time_range.end)
        for event in found.events()
        # Names that programs give to stretches of time lie on the device too, idle moments included.
        if event.device_type == DeviceType.CUDA and not getattr(event, "is_user_annotation", False)
    ) / 1e6 / steps  # fmt: skip


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """The length of what these stretches cover together."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def shorten(name: str, most: int = 110) -> str:
    """Templates make kernels' names very long; their beginning and their end tell most."""
    name = name.replace("|", "/").replace("void ", "").replace("at::native::", "")
    return name if len(name) <= most else f"{name[: most - 43]} … {name[-40:]}"
