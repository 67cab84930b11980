"""Run a command that needs several GPUs of this machine: with_gpus.py COUNT COMMAND …

Takes free GPUs, sets CUDA_VISIBLE_DEVICES and becomes the command; the GPUs are free again when the command and all
that it has started have ended. Where a scheduler or the user has chosen already, or there are no GPUs, it changes
nothing. Programs on one GPU take theirs by themselves.

Example:
    python scripts/with_gpus.py 2 torchrun --standalone --nproc-per-node 2 scripts/pretrain.py --help
"""

import logging
import os
import shutil
import sys

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.gpus import claim_gpus, hand_on


def main() -> None:
    """Choose, then become the command: signals and status are its own."""
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return
    count, *command = sys.argv[1:] or [""]
    if not count.isdigit() or int(count) == 0 or not command:
        raise UserError("a number of GPUs and a command were expected: with_gpus.py 2 torchrun …")
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]}: no such command")
    claim_gpus(int(count))
    hand_on()
    os.execvp(command[0], command)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
