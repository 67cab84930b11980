"""The usual trainer on the same task: transformers.Trainer with XLMRobertaForMaskedLM, as in the library's examples."""

import contextlib
import time
from pathlib import Path

import torch
from torch.utils.data import Dataset


class RandomBlocks(Dataset):
    """Blocks of random ids between <s> and </s>."""

    def __init__(self, count: int, length: int, vocabulary: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.ids = torch.randint(4, vocabulary - 1, (count, length), generator=generator)
        self.ids[:, 0], self.ids[:, -1] = 0, 2

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.ids[index]


class Masking:
    """What the library's DataCollatorForLanguageModeling does, without a tokenizer."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def __call__(self, rows: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        ids = torch.stack(rows)
        labels = ids.clone()
        hidden = (torch.rand(ids.shape) < 0.15) & (ids > 3)
        labels[~hidden] = -100
        fate = torch.rand(ids.shape)
        ids[hidden & (fate < 0.8)] = self.vocabulary - 1
        other = hidden & (fate >= 0.8) & (fate < 0.9)
        ids[other] = torch.randint(4, self.vocabulary - 1, (int(other.sum()),))
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def make_model(shape: dict, vocabulary: int):
    """The library's model, freshly drawn."""
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    config = XLMRobertaConfig(
        vocab_size=vocabulary, hidden_size=shape["hidden"], num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"], intermediate_size=shape["intermediate"],
        max_position_embeddings=shape["positions"] + 2, type_vocab_size=1, pad_token_id=1, bos_token_id=0,
        eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(1)
    return XLMRobertaForMaskedLM(config)


def measure(
    shape: dict, vocabulary: int, length: int, batch: int, piece: int, device: torch.device, precision: str, warm: int,
    steps: int, folder: Path, trainer: bool,
) -> tuple[float, list[float]]:  # fmt: skip
    """Tokens per second over `steps` steps of `batch` blocks in pieces of `piece`, after `warm` steps; and losses."""
    model = make_model(shape, vocabulary)
    data = RandomBlocks((warm + steps) * batch, length, vocabulary)
    work = _with_trainer if trainer else _by_hand
    seconds, losses = work(model, data, Masking(vocabulary), batch, piece, device, precision, warm, steps, folder)
    return steps * batch * length / seconds, losses


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _with_trainer(model, data, masking, batch, piece, device, precision, warm, steps, folder):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    times: dict[int, float] = {}

    class Clock(TrainerCallback):
        """Looks at the clock twice; the trainer itself never waits for the device."""

        def on_step_end(self, args, state, control, **_):
            if state.global_step in (warm, warm + steps):
                times[state.global_step] = _now(device)

    arguments = TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=piece, gradient_accumulation_steps=batch // piece,
        max_steps=warm + steps, learning_rate=1e-4, weight_decay=0.01, bf16=precision == "bf16", report_to=[],
        save_strategy="no", logging_strategy="steps", logging_steps=warm + steps, logging_first_step=True,
        disable_tqdm=True, use_cpu=device.type == "cpu", remove_unused_columns=False, seed=1,
        dataloader_num_workers=2 if device.type == "cuda" else 0,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=data, data_collator=masking, callbacks=[Clock()])
    with contextlib.redirect_stdout(None):
        trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    return times[warm + steps] - times[warm], losses


def _by_hand(model, data, masking, batch, piece, device, precision, warm, steps, folder):
    """Mixed precision, accumulation, clipping, fused AdamW and a linear schedule, where `accelerate` is missing."""
    model = model.to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / (warm + steps))
    low = torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()
    losses, started = [], 0.0
    for step in range(warm + steps):
        if step == warm:
            started = _now(device)
        total = torch.zeros((), device=device)
        for first in range(step * batch, (step + 1) * batch, piece):
            rows = masking([data[index] for index in range(first, first + piece)])
            rows = {name: value.to(device, non_blocking=True) for name, value in rows.items()}
            with low:
                loss = model(**rows).loss * piece / batch
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        losses.append(total)
    return _now(device) - started, [float(loss) for loss in losses]
