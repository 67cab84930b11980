"""Small tokenizers of both families, made on the spot."""

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

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
    return tokenizer


def xlmr_tokenizer() -> Tokenizer:
    """A unigram model with XLM-R's special tokens and its mark for the beginning of a word."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [(f"▁{word}", -5.0) for word in WORDS] + [(piece, -8.0) for piece in [*PIECES, ".", "?"]]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return tokenizer
