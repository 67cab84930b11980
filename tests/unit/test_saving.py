"""When checkpoints are written, what SIGTERM does, and what a training that goes on knows of its past."""

import os
import signal
from dataclasses import dataclass, field

import pytest
import torch

from crossalign.engine.checkpoints import REQUEUE, Checkpoints, InterruptedTraining, Saver, Saving, requeued


@dataclass
class Account:
    seconds: float = 0.0
    resumed: int = 0
    loss: list[float] = field(default_factory=list)


def saver(folder=None, saving=None):
    return Saver(Checkpoints(folder, "r"), saving, Account())


@pytest.mark.parametrize(
    ("saving", "expected"),
    [(Saving(steps=2), [False, True, False, True]), (Saving(seconds=0), [True] * 4), (None, [False] * 4)],
)
def test_when_a_checkpoint_is_due(saving, expected):
    one = saver(saving=saving)
    with one.running():
        assert [one.due(step) for step in (1, 2, 3, 4)] == expected


def test_sigterm_ends_the_training_after_its_checkpoint_only(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    one = saver(tmp_path)
    with pytest.raises(InterruptedTraining, match=rf"at step 3; saved to {tmp_path}"), one.running():
        one.save(2, {})
        os.kill(os.getpid(), signal.SIGTERM)
        assert one.due(3)
        one.progress.loss.append(0.5)
        one.save(3, {"x": torch.ones(2)}, epoch=1)
    assert signal.getsignal(signal.SIGTERM) == before
    again = saver(tmp_path)
    account = again.progress
    tensors, notes = again.resume()
    assert tensors["x"].tolist() == [1, 1] and notes["epoch"] == 1
    # The account that the training holds is filled, not replaced.
    assert account.loss == [0.5] and account.resumed == 1 and account.seconds > 0


def test_seconds_add_up_over_interruptions(tmp_path):
    one = saver(tmp_path)
    with one.running():
        one.progress.seconds = 100.0
        one.write({})
    again = saver(tmp_path)
    with again.running():
        again.resume()
    assert 100 < again.progress.seconds < 130


def test_without_a_folder_the_message_says_so():
    one = saver()
    one.stop_requested = True
    with pytest.raises(InterruptedTraining, match="at step 5; saved to nowhere: no folder"), one.running():
        one.save(5, {})


@pytest.mark.parametrize("tell", [True, False])
def test_a_program_asks_to_be_started_again(tell, capsys):
    with pytest.raises(SystemExit) as wish, requeued(tell):
        raise InterruptedTraining("stopped")
    assert wish.value.code == REQUEUE == 75
    assert capsys.readouterr().err == ("stopped\n" if tell else "")
