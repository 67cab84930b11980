"""Small tokenizers of every family, made on the spot."""

import json

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

WORDS = ["the", "cat", "sat", "on", "mat", ".", "John", "lives", "in", "Paris", "and", "Berlin"]
WORDS += ["Where", "does", "live", "?", "who"]
PIECES = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,()-"]


def bert_tokenizer() -> Tokenizer:
    """WordPiece with BERT's special tokens."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *PIECES, *(f"##{piece}" for piece in PIECES)]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _templates(tokenizer, ["[CLS]", "[SEP]"], "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")


def xlmr_tokenizer() -> Tokenizer:
    """A unigram model with XLM-R's special tokens and its mark for the beginning of a word."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [(f"▁{word}", -5.0) for word in WORDS] + [(piece, -8.0) for piece in [*PIECES, ".", "?"]]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return _templates(tokenizer, ["<s>", "</s>"], "<s> $A </s>", "<s> $A </s> </s> $B </s>")


TEXT = [
    "the cat sat on the mat .",
    "John lives in Paris and Berlin",
    "Where does the cat live ?",
    "мой дом , твой дом",
] * 3


def family_tokenizer(family: str) -> Tokenizer:
    """Trained on `TEXT`, with the parts and the special tokens that the family's published tokenizers have."""
    return _FAMILIES[family]()


def _byte_level(specials, single=None, pair=None, normalizer=None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if normalizer:
        tokenizer.normalizer = normalizer
    _train_bpe(tokenizer, specials, pre_tokenizers.ByteLevel.alphabet())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return _templates(tokenizer, specials, single, pair)


def _sentencepiece_bpe(specials, single, pair, prefix) -> Tokenizer:
    """Llama's and Gemma's: spaces become ▁ in the normaliser, unknown characters bytes."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    _train_bpe(trained, [*specials, *(f"<0x{byte:02X}>" for byte in range(256))], [])
    state = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) for merge in state["merges"]]
    tokenizer = Tokenizer(models.BPE(state["vocab"], merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    replace = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace]) if prefix else replace
    tokenizer.add_special_tokens(specials)
    return _templates(tokenizer, specials, single, pair)


def _unigram(specials, single, pair) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    unknown = next(name for name in specials if "unk" in name.lower())
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=specials, unk_token=unknown, show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return _templates(tokenizer, specials, single, pair)


def _train_bpe(tokenizer, specials, alphabet) -> None:
    trainer = trainers.BpeTrainer(
        vocab_size=len(specials) + 330, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)


def _templates(tokenizer, specials, single, pair) -> Tokenizer:
    if single:
        numbers = [(name, tokenizer.token_to_id(name)) for name in specials]
        tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=numbers)
    return tokenizer


_FAMILIES = {
    "gpt2": lambda: _byte_level(["<|endoftext|>"]),
    "bloom": lambda: _byte_level(["<unk>", "<s>", "</s>", "<pad>"]),
    "qwen3": lambda: _byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], normalizer=normalizers.NFC()),
    "modernbert": lambda: _byte_level(
        ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"], "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", normalizers.NFC()
    ),
    "llama": lambda: _sentencepiece_bpe(["<unk>", "<s>", "</s>"], "<s> $A", "<s> $A <s>:1 $B:1", True),
    "gemma3": lambda: _sentencepiece_bpe(
        ["<pad>", "<eos>", "<bos>", "<unk>"], "<bos> $A", "<bos> $A <bos>:1 $B:1", False
    ),
    "t5": lambda: _unigram(["<pad>", "</s>", "<unk>"], "$A </s>", "$A </s> $B </s>"),
    "deberta-v2": lambda: _unigram(
        ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    ),
}
