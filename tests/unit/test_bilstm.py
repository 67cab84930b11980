"""The BiLSTM's parts: lexicon, encoder, tasks of whole words, files."""

import json

import numpy as np
import torch
from safetensors.torch import load_file

from crossalign.engine.bilstm import LONGEST, Lexicon, Sizes
from crossalign.engine.bilstm_training import WordModel, save_word_model
from crossalign.engine.seeds import torch_seeded
from crossalign.tasks.words import get_word_task

SIZES = Sizes(layers=2, hidden=6, characters=5, words=4)
SENTENCES = [["The", "cat", "sat"], ["the", "dog", "sat", "."], ["a", "cat", "."]]
LABELS = {"parsing": ["det", "nsubj", "root"], "ner": ["O", "B-PER", "I-PER"], "pos": None}


def make_model(task="pos", sizes=SIZES):
    with torch_seeded(1, "test"):
        return WordModel(get_word_task(task, LABELS[task]), Lexicon.of(SENTENCES), sizes).eval()


def states(model, *sentences):
    """Hidden states of sentences in one batch."""
    examples = [{"input_ids": model.lexicon.numbers(s), "word_starts": [], "labels": []} for s in sentences]
    for example in examples:
        count = len(example["input_ids"])
        example |= {"word_starts": list(range(1, count + 1)), "labels": [0] * count, "heads": [0] * count}
    store = model.store(examples)
    words, batch = model.batch(store, np.arange(len(sentences)), torch.device("cpu"))
    with torch.no_grad():
        return model.encoder(words), batch


# ---- lexicon


def test_lexicon_knows_what_was_seen_twice():
    lexicon = Lexicon.of(SENTENCES)
    assert lexicon.words == [".", "cat", "sat", "the"]
    assert lexicon.characters == [".", "a", "c", "e", "h", "s", "t"]
    assert lexicon.sizes == (5, 9)
    words, characters, lengths = lexicon.spell(np.array(lexicon.numbers(["THE", "dog", "at", "Ω"])))
    assert words.tolist() == [4, 0, 0, 0]
    assert characters.tolist() == [[1, 1, 1], [1, 1, 1], [3, 8, 0], [1, 0, 0]]
    assert lengths.tolist() == [3, 3, 2, 1]
    assert lexicon.numbers(["Ω", "THE", "new"]) == [3, 0, 4]
    assert lexicon.forms == ["THE", "dog", "at", "Ω", "new"]


def test_odd_forms():
    lexicon = Lexicon.of([["a" * 500, "a" * 500]])
    words, _, lengths = lexicon.spell(np.array(lexicon.numbers(["a" * 500, ""])))
    assert lengths.tolist() == [LONGEST, 1] and words.tolist() == [1, 0]


# ---- encoder


def test_neighbours_in_the_batch_do_not_matter():
    model = make_model()
    sentences = [["cat"], ["the", "cat", "sat", "on", "a", "mattress"], ["dog", "."]]
    together, batch = states(model, *sentences)
    assert together.shape == (3, 7, 12)
    assert batch["word_mask"].sum(dim=1).tolist() == [1, 6, 2]
    for row, sentence in enumerate(sentences):
        alone, _ = states(model, sentence)
        assert torch.allclose(alone[0], together[row, : len(sentence) + 1], atol=1e-6)
        assert not together[row, len(sentence) + 1 :].any()


def test_every_word_sees_the_whole_sentence():
    model = make_model()
    one, two = states(model, ["the", "cat", "sat"])[0], states(model, ["the", "cat", "."])[0]
    assert all(not torch.allclose(one[0, place], two[0, place]) for place in range(4))


def test_later_layers_add_to_the_earlier():
    model = make_model()
    both, _ = states(model, ["the", "cat"])
    for parameter in model.encoder.layers[1].parameters():
        torch.nn.init.zeros_(parameter)
    first, _ = states(model, ["the", "cat"])
    assert first.any() and not torch.allclose(both, first)
    del model.encoder.layers[1]
    assert torch.equal(states(model, ["the", "cat"])[0], first)


def test_unknown_words_differ_by_their_letters_and_unknown_letters_do_not():
    model = make_model()
    known = [states(model, [form])[0] for form in ("act", "tac")]
    assert not torch.allclose(*known)
    unknown = [states(model, [form])[0] for form in ("ωψ", "жщ")]
    assert torch.equal(*unknown)


# ---- tasks and files


def test_examples_show_every_word():
    task = get_word_task("parsing", LABELS["parsing"])
    record = {"id": "a", "words": ["cat"] * 700, "heads": [0, *range(1, 700)], "relations": ["root"] + ["odd"] * 699}
    (example,) = task.examples([record], Lexicon.of(SENTENCES))
    assert example["word_starts"] == list(range(1, 701))
    assert example["heads"] == record["heads"]
    assert example["labels"] == [2] + [-100] * 699
    assert example["cut"] == 0


def test_a_folder_has_weights_vocabulary_and_settings(tmp_path):
    model = make_model("parsing")
    save_word_model(tmp_path, model, {"seed": 7})
    tensors, written = model.state_dict(), load_file(tmp_path / "model.safetensors")
    assert written.keys() == tensors.keys() and all(torch.equal(written[key], tensors[key]) for key in tensors)
    lists = json.loads((tmp_path / "vocabulary.json").read_text(encoding="utf-8"))
    assert lists == {"words": model.lexicon.words, "characters": model.lexicon.characters}
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    sizes = model.sizes.model_dump()
    assert config == {"seed": 7, "sizes": sizes, "task": "parsing", "labels": list(model.task.labels)}
