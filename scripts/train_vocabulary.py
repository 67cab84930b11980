"""Make a joint WordPiece vocabulary from prepared texts (one sentence a line) and write it as tokenizer.json."""

import argparse
from itertools import chain, islice
from pathlib import Path

from crossalign.engine.programs import language_of, named_files
from crossalign.engine.settings import VocabularySettings, checked
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import run_main


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n    python scripts/train_vocabulary.py --settings '{\"size\": 600}' --up-to"
        " --out tokenizer.json --texts wo=results/demo/data/text/wikipedia_wo/train.txt",
    )
    parser.add_argument("--texts", required=True, nargs="+", metavar="[NAME=]FILE", help="prepared texts")
    parser.add_argument(
        "--letters", nargs="*", default=[], metavar="[NAME=]FILE", help="texts whose letters get pieces"
    )
    parser.add_argument("--up-to", action="store_true", help="take what the texts support if that is less")
    parser.add_argument("--out", required=True, type=Path, help="tokenizer.json to write")
    return read_args(parser, settings=True)


def main() -> None:
    """Read, count, write."""
    args = parse_args()
    settings = VocabularySettings(**checked(args.settings, VocabularySettings, place=args.place))

    from crossalign.engine.corpus import lines_of
    from crossalign.engine.tokenizer import letters_of, train_vocabulary
    from crossalign.runtime.files import write_atomic

    files, others = (
        [path for paths in named_files(texts, flag, language_of).values() for path in paths]
        for texts, flag in ((args.texts, "--texts"), (args.letters, "--letters"))
    )
    tokenizer = train_vocabulary(
        lambda: chain.from_iterable(islice(lines_of(path), settings.lines) for path in files),
        settings.size,
        settings.style,
        up_to=args.up_to,
        letters=letters_of(lines_of(path) for path in others),
    )
    with write_atomic(args.out) as stream:
        stream.write(tokenizer.to_str(pretty=False))
    print(f"{args.out}: {tokenizer.get_vocab_size()} pieces")


if __name__ == "__main__":
    run_main(main)
