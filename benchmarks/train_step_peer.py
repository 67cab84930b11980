"""The usual trainer on the same examples: transformers.Trainer with the library's models, as in its example scripts."""

import contextlib
import time

import torch
from torch import nn

from crossalign.models.config import EncoderConfig


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


def measure(name, task, config, examples, batch, precision, device, steps, warm, folder) -> float:
    """Seconds per step of the trainer, without its first `warm` steps."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    def now() -> float:
        if device.type == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    class Clock(TrainerCallback):
        times: dict[int, float] = {}

        def on_step_end(self, args, state, control, **_):
            if state.global_step in (warm, steps):
                self.times[state.global_step] = now()

    clock = Clock()
    arguments = TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=batch, max_steps=steps, learning_rate=5e-5,
        bf16=precision == "bf16", report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
        use_cpu=device.type == "cpu", remove_unused_columns=False, warmup_steps=0, seed=1,
    )  # fmt: skip
    model = make_model(name, task, config)
    rows = rows_of(name, examples)
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=collate, callbacks=[clock])
    with contextlib.redirect_stdout(None):
        trainer.train()
    return (clock.times[steps] - clock.times[warm]) / (steps - warm)


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
