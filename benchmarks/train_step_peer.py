"""The usual trainer on the same examples: transformers.Trainer with the library's models, as in its example scripts."""

import contextlib
import itertools
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from crossalign.engine.hyperparameters import Settings
from crossalign.engine.optimiser import learning_rates
from crossalign.engine.shape import EncoderConfig


class Parser(nn.Module):
    """The library's encoder with the project's parsing head, since the library has no parser."""

    def __init__(self, config, task) -> None:
        super().__init__()
        from transformers import BertModel

        self.bert = BertModel(config, add_pooling_layer=False)
        self.head = task.make_head(config.hidden_size, config.hidden_dropout_prob)
        self.task = task

    def forward(self, input_ids, attention_mask, **fields):
        hidden = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        return {"loss": self.task.loss(self.head, hidden, fields | {"attention_mask": attention_mask})}


def library_config(config: EncoderConfig):
    """The library's configuration of the same shape."""
    from transformers import BertConfig

    raw = config.to_huggingface()
    raw.pop("model_type")
    return BertConfig(**raw)


def make_model(name: str, task, config: EncoderConfig) -> nn.Module:
    """The library's model for a task, freshly drawn."""
    import transformers

    library = library_config(config)
    if name == "parsing":
        return Parser(library, task)
    library.num_labels = max(2, len(task.labels))
    kinds = {
        "pos": transformers.BertForTokenClassification,
        "ner": transformers.BertForTokenClassification,
        "nli": transformers.BertForSequenceClassification,
        "qa": transformers.BertForQuestionAnswering,
    }
    return kinds[name](library)


def rows_of(name: str, examples: list[dict]) -> list[dict]:
    """Our examples with the library's names and, for tagging, labels at the first sub-words."""
    rows = []
    for example in examples:
        row = {"input_ids": example["input_ids"]}
        if "token_type_ids" in example:
            row["token_type_ids"] = example["token_type_ids"]
        if name in ("pos", "ner"):
            row["labels"] = [-100] * len(row["input_ids"])
            for position, label in zip(example["word_starts"], example["labels"], strict=True):
                row["labels"][position] = label
        elif name == "nli":
            row["labels"] = example["label"]
        elif name == "qa":
            row |= {"start_positions": example["start"], "end_positions": example["end"]}
        else:
            row |= {key: example[key] for key in ("word_starts", "heads", "labels")}
            row["word_mask"] = [1] * len(example["word_starts"])
        rows.append(row)
    return rows


def collate(rows: list[dict]) -> dict[str, torch.Tensor]:
    """Pad to the longest row, as the library's collators do."""
    pads = {"labels": -100, "heads": -100}
    batch = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if isinstance(values[0], list):
            longest = max(map(len, values))
            values = [value + [pads.get(name, 0)] * (longest - len(value)) for value in values]
        batch[name] = torch.tensor(values)
    lengths = torch.tensor([len(row["input_ids"]) for row in rows])
    batch["attention_mask"] = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    return batch


class Pace:
    """Seconds per step without the first `warm`, until `steps` are made or so many `seconds` have gone since then."""

    def __init__(self, device: torch.device, steps: int, warm: int, seconds: float = math.inf) -> None:
        self.device, self.steps, self.warm, self.seconds = device, steps, warm, seconds
        self.measured, self.each = 0, math.nan

    def now(self) -> float:
        """Wall clock of the GPU's work; on the CPU seconds of this process."""
        if self.device.type == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def over(self, step: int) -> bool:
        """To be asked after every step, counted from 1: whether it was the last one."""
        if step == self.warm:
            self.began, self.until = self.now(), time.perf_counter() + self.seconds
        if step <= self.warm or (step < self.steps and time.perf_counter() < self.until):
            return False
        self.measured = step - self.warm
        self.each = (self.now() - self.began) / self.measured
        return True


def measure(name, task, config, examples, precision, pace: Pace, settings: Settings, total, folder, trainer=True):
    """Seconds per step of the trainer in a training of `total` steps, which ends when the pace is known.

    Without `trainer` a loop written by hand takes its place, for machines without `accelerate`, which it needs.
    """
    model, rows = make_model(name, task, config), rows_of(name, examples)
    work = _with_trainer if trainer else _by_hand
    work(model, rows, precision, pace, settings, total, folder)
    return pace.each


def _with_trainer(model, rows, precision, pace, settings, total, folder) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            if pace.over(state.global_step):
                control.should_training_stop = True

    arguments = TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=settings.batch, max_steps=total, bf16=precision == "bf16",
        learning_rate=settings.learning_rate, warmup_steps=math.ceil(total * settings.warmup),
        adam_beta1=settings.betas[0], adam_beta2=settings.betas[1], adam_epsilon=settings.epsilon,
        weight_decay=settings.weight_decay, max_grad_norm=settings.clip, report_to=[], save_strategy="no",
        logging_strategy="no", disable_tqdm=True, use_cpu=pace.device.type == "cpu", remove_unused_columns=False,
        seed=settings.seed,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=collate, callbacks=[Clock()])
    with contextlib.redirect_stdout(None):
        trainer.train()


def _by_hand(model, rows, precision, pace, settings, total, folder) -> None:
    """Mixed precision, clipping, fused AdamW and the schedule, as the trainer has them."""
    model = model.to(pace.device).train()
    optimiser = torch.optim.AdamW(
        model.parameters(),
        1.0,
        settings.betas,
        settings.epsilon,
        settings.weight_decay,
        fused=pace.device.type == "cuda",
    )
    rates = learning_rates(settings.learning_rate, total, settings.warmup, settings.schedule)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rates[min(step, total - 1)])
    mixed = torch.autocast(pace.device.type, torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()
    torch.manual_seed(settings.seed)
    batches = DataLoader(rows, settings.batch, shuffle=True, collate_fn=collate)
    for step, batch in enumerate(itertools.chain.from_iterable(itertools.repeat(batches)), 1):
        with mixed:
            loss = model(**{key: value.to(pace.device) for key, value in batch.items()})["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        if pace.over(step):
            return


@torch.inference_mode()
def padded_predictions(name, task, config, examples, device, count=32) -> float:
    """Tokens per second of a plain evaluation loop: `count` examples at a time, padded, bf16 autocast on CUDA."""
    model = make_model(name, task, config).to(device).eval()
    rows = rows_of(name, examples)
    mixed = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    for attempt in range(2):
        started = clock()
        with mixed:
            for start in range(0, len(rows) if attempt else min(len(rows), 4 * count), count):
                batch = {key: value.to(device) for key, value in collate(rows[start : start + count]).items()}
                batch.pop("labels", None)
                model(**batch).logits.argmax(-1).cpu()
    return sum(len(row["input_ids"]) for row in rows) / (clock() - started)
