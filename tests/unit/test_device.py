"""The start of a GPU in a thread, with something slow on the CPU in its place."""

import subprocess
import sys

PROGRAM = """
import sys
import torch
sys.path.insert(0, {scripts!r})
from crossalign.engine import device
from crossalign.runtime.errors import UserError, run_main

def slow(_):
    square = torch.ones(2000, 2000)
    for _ in range(8):
        torch.mm(square, square)

device._first_product = slow

def main():
    device.wake(torch.device("cuda"))
    raise UserError("no such model")

run_main(main)
"""


def test_a_program_that_fails_while_the_gpu_starts_ends_with_its_sentence(root):
    program = PROGRAM.format(scripts=str(root / "scripts"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "error: no such model\n")
