"""The usual trainer on the same examples: transformers.Trainer with the library's models, as in its example scripts."""

import contextlib
import importlib.util
import itertools
from pathlib import Path

import torch
from common import now
from torch import nn
from torch.utils.data import DataLoader

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


def task_model(name: str, task, config: EncoderConfig) -> nn.Module:
    """The library's model for a task, freshly drawn."""
    import transformers

    raw = config.to_huggingface()
    raw.pop("model_type")
    library = transformers.BertConfig(**raw)
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
        row = {key: example[key] for key in ("input_ids", "token_type_ids") if key in example}
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


def random_blocks(count: int, length: int, vocabulary: int) -> list[torch.Tensor]:
    """Blocks of random ids between <s> and </s>."""
    ids = torch.randint(4, vocabulary - 1, (count, length), generator=torch.Generator().manual_seed(1))
    ids[:, 0], ids[:, -1] = 0, 2
    return list(ids)


def mask(rows: list[torch.Tensor], vocabulary: int) -> dict[str, torch.Tensor]:
    """What the library's DataCollatorForLanguageModeling does, without a tokenizer."""
    ids = torch.stack(rows)
    labels = ids.clone()
    hidden = (torch.rand(ids.shape) < 0.15) & (ids > 3)
    labels[~hidden] = -100
    fate = torch.rand(ids.shape)
    ids[hidden & (fate < 0.8)] = vocabulary - 1
    other = hidden & (fate >= 0.8) & (fate < 0.9)
    ids[other] = torch.randint(4, vocabulary - 1, (int(other.sum()),))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def language_model(shape: dict, vocabulary: int) -> nn.Module:
    """The library's masked language model, freshly drawn."""
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    config = XLMRobertaConfig(
        vocab_size=vocabulary, hidden_size=shape["hidden"], num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"], intermediate_size=shape["intermediate"],
        max_position_embeddings=shape["positions"] + 2, type_vocab_size=1, pad_token_id=1, bos_token_id=0,
        eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(1)
    return XLMRobertaForMaskedLM(config)


def has_trainer() -> bool:
    """Whether the library's trainer can run: it needs `accelerate`. Without it a plain loop takes its place."""
    return importlib.util.find_spec("accelerate") is not None


def train(
    model: nn.Module, rows, make_batch, batch: int, pieces: int, device: torch.device, precision: str, warm: int,
    steps: int, folder: Path,
) -> float:  # fmt: skip
    """Seconds per step of `batch` rows in so many pieces, over `steps` steps of which the first `warm` do not count."""
    work = _with_trainer if has_trainer() else _by_hand
    return work(model, rows, make_batch, batch, pieces, device, precision, warm, steps, folder)


def _with_trainer(model, rows, make_batch, batch, pieces, device, precision, warm, steps, folder) -> float:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    times: dict[int, float] = {}

    class Clock(TrainerCallback):
        """Looks at the clock twice; the trainer itself never waits for the device."""

        def on_step_end(self, args, state, control, **_):
            if state.global_step in (warm, steps):
                times[state.global_step] = now(device)

    arguments = TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=batch // pieces, gradient_accumulation_steps=pieces,
        max_steps=steps, bf16=precision == "bf16", weight_decay=0.01, report_to=[], save_strategy="no",
        logging_strategy="no", disable_tqdm=True, use_cpu=device.type == "cpu", remove_unused_columns=False, seed=1,
        dataloader_num_workers=2 if pieces > 1 and device.type == "cuda" else 0,
    )  # fmt: skip
    with contextlib.redirect_stdout(None):
        Trainer(model, arguments, train_dataset=rows, data_collator=make_batch, callbacks=[Clock()]).train()
    return (times[steps] - times[warm]) / (steps - warm)


def _by_hand(model, rows, make_batch, batch, pieces, device, precision, warm, steps, folder) -> float:
    """Mixed precision, accumulation, clipping, fused AdamW and a linear schedule, as the trainer has them."""
    model = model.to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), 5e-5, weight_decay=0.01, fused=device.type == "cuda")
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    mixed = torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()
    loader = DataLoader(rows, batch // pieces, shuffle=True, collate_fn=make_batch)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    began = now(device)
    for step in range(steps):
        if step == warm:
            began = now(device)
        for part in itertools.islice(batches, pieces):
            with mixed:
                loss = model(**{key: value.to(device, non_blocking=True) for key, value in part.items()})["loss"]
            (loss / pieces).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
    return (now(device) - began) / (steps - warm)


@torch.inference_mode()
def padded_predictions(name, task, config, examples, device, count=32) -> float:
    """Tokens per second of a plain evaluation loop: `count` examples at a time, padded, bf16 autocast on CUDA."""
    model = task_model(name, task, config).to(device).eval()
    rows = rows_of(name, examples)
    mixed = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()
    for last in (4 * count, len(rows)):
        began = now(device)
        with mixed:
            for start in range(0, min(len(rows), last), count):
                batch = {key: value.to(device) for key, value in collate(rows[start : start + count]).items()}
                batch.pop("labels", None)
                model(**batch).logits.argmax(-1).cpu()
    return sum(len(row["input_ids"]) for row in rows) / (now(device) - began)
