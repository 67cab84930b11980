"""Pretraining by a team of processes against one process: the same losses, and what adding gradients up costs.

The team is started by torchrun, its gradients go through NCCL on GPUs and through Gloo on a CPU. Both train the same
model on the same random tokens without dropout, whose random numbers would differ. With one GPU a team of one is all
there can be; its gradients are then sent through NCCL all the same, within the captured graph.

Usage: python benchmarks/pretrain_team.py [--processes N] [--device cuda|cpu] [--length 512] [--batch N] [--steps N]
On a CPU, and with --quick, the model is very small.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
# Before the folder of the programs, which has a pretrain.py too.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch

import pretrain as bench_program
from crossalign.engine.device import Team, join_team
from crossalign.engine.pretrain import Pretraining, new_model
from crossalign.engine.pretrain_job import new_config
from crossalign.engine.pretrain_settings import PretrainSettings

MARK = "result: "
TOLERANCE = {"fp32": 1e-4, "bf16": 2e-3}
# Of the weights' movement, relative. Few steps change the losses little, so that these hardly show wrong gradients.
MOVED = 0.1
SAMPLE = 20_000


def parse_args() -> argparse.Namespace:
    """The command line; what the measuring program of benchmarks/pretrain.py expects is added."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cuda = torch.cuda.is_available()
    parser.add_argument("--processes", type=int, default=torch.cuda.device_count() if cuda else 2)
    parser.add_argument("--device", default="cuda" if cuda else "cpu", choices=("cuda", "cpu"))
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64, help="blocks per step, of all processes")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.quick = args.quick or args.device == "cpu"
    args.vocabulary = bench_program.VOCABULARY
    return args


def join(device: str) -> tuple[Team, str]:
    """The team that torchrun describes; also one of a single process, which the programs would not make."""
    if os.environ.get("WORLD_SIZE") == "1":
        torch.distributed.init_process_group("gloo" if device == "cpu" else "cpu:gloo,cuda:nccl")
        return Team(), device
    return join_team(device)


def work(args: argparse.Namespace) -> dict:
    """Train; the losses of the whole team, and milliseconds per step."""
    started = "RANK" in os.environ
    team, device = join(args.device) if started else (Team(), args.device)
    args.device = device
    with tempfile.TemporaryDirectory() as folder:
        bench = bench_program.Bench(args, Path(folder))
        batch = 4 if args.quick else args.batch
        warm = bench_program.WARM
        settings = PretrainSettings(
            steps=warm + args.steps, batch=batch, block=args.length, learning_rate=1e-4, precision=bench.precision,
            dropout=0.0,
        )  # fmt: skip
        config = new_config(bench.tokenizer, "post", "xlm-roberta", dict(bench.shape))
        encoder, head = new_model(config, 1)
        texts = {"random": bench.text}
        training = Pretraining(encoder, head, bench.tokenizer, texts, settings, bench.device, team=team)
        if started and team.alone:
            training.engine.reduce = add
        master = training.engine.arena.master
        some = torch.linspace(0, len(master) - 1, SAMPLE, dtype=torch.float64).long().to(master.device)
        begun_at = master[some]
        for step in range(warm):
            training.engine.step(training.store.members(step))
        bench_program.wait(bench.device)
        begun = time.perf_counter()
        for step in range(warm, warm + args.steps):
            training.engine.step(training.store.members(step))
        bench_program.wait(bench.device)
        took = 1000 * (time.perf_counter() - begun) / args.steps
        losses = training.engine.losses.double()
        team.add([losses])
        return {
            "processes": team.world, "losses": losses.cpu().tolist(), "ms": took, "first": team.first,
            "moved": (master[some] - begun_at).cpu().tolist(),
            "graph": training.engine.capture, "precision": bench.precision, "backend": backend(bench.device),
        }  # fmt: skip


def add(tensors: list[torch.Tensor]) -> None:
    """What a team does to its gradients, by a team of one."""
    for tensor in tensors:
        if tensor.numel():
            torch.distributed.all_reduce(tensor)


def backend(device: torch.device) -> str | None:
    """What sums the gradients."""
    if not torch.distributed.is_initialized():
        return None
    return "nccl" if device.type == "cuda" else "gloo"


def run(args: argparse.Namespace, launcher: list[str]) -> dict:
    """The result of processes of their own."""
    command = [sys.executable, *launcher, __file__, "--worker", "--device", args.device, "--length", str(args.length)]
    command += ["--batch", str(args.batch), "--steps", str(args.steps), *(["--quick"] if args.quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not found:
        sys.exit(f"error: {' '.join(command)} failed")
    return json.loads(found[-1].removeprefix(MARK))


def main() -> None:
    """One process, then the team; compare."""
    args = parse_args()
    if args.worker:
        result = work(args)
        if result.pop("first"):
            print(MARK + json.dumps(result), flush=True)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        return
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(args.processes)]
    alone, team = run(args, []), run(args, launcher)
    worst = max(abs(a - b) / abs(a) for a, b in zip(alone["losses"], team["losses"], strict=True))
    print("| processes | gradients by | graph | ms per step | first loss | last loss |\n|---|---|---|---|---|---|")
    for result in (alone, team):
        first, last = result["losses"][0], result["losses"][-1]
        how = f"{result['processes']} | {result['backend'] or '-'} | {result['graph']} | {result['ms']:.2f}"
        print(f"| {how} | {first:.5f} | {last:.5f} |")
    one, other = (torch.tensor(result["moved"]) for result in (alone, team))
    apart = float((one - other).norm() / one.norm())
    print(f"largest relative difference of {len(team['losses'])} losses: {worst:.1e}")
    print(f"relative difference of the way that {SAMPLE} weights have gone: {apart:.1e}")
    if not (worst <= TOLERANCE[alone["precision"]] and apart <= MOVED):
        sys.exit("error: the team does not train as one process does")


if __name__ == "__main__":
    main()
