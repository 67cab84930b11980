r"""Prepare one split of a treebank: CoNLL-U in, CoNLL-U with syntactic words only out.

Several sources are read as one; a .txt file has words and tags, and no trees. With --fold, the sentences are cut into
folds and --part says which part of the rotation is written: of five folds three train, one is for development, one for
testing.

Example:
    python scripts/prepare_trees.py --fold 1 --part test --out test.conllu \
        --source results/demo/downloads/ud/gsw_uzh/test.conllu
"""

from argparse import Namespace

from crossalign.data.command import parser, positive, prepared
from crossalign.data.conllu import PARTS, Sentence, assign_folds, part_of, read_sentences, read_tagged, write_sentences
from crossalign.data.lines import Source
from crossalign.data.report import Names, Report
from crossalign.data.transliteration import transliterator
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main

# Of the draw of folds, which is the same for all runs.
SEED = 1


def parse_args() -> Namespace:
    """The command line."""
    args = parser(__doc__, transliterate="write the forms in Latin letters")
    args.add_argument("--fold", type=positive, help="which rotation, from 1")
    args.add_argument("--folds", type=positive, default=5)
    args.add_argument("--part", choices=PARTS, help="what to write of the rotation")
    args.add_argument("--several-roots", action="store_true", help="sentences may be made of several trees (tweets)")
    return read_args(args)


def read_all(args: Namespace, report: Report) -> list[Sentence]:
    """The sentences of all sources."""
    sentences, names = [], Names(report)
    for path in args.source:
        source = Source(path)
        with source.open() as stream:
            if path.suffix == ".txt":
                sentences.extend(read_tagged(stream, source.name, report))
                continue
            sentences.extend(read_sentences(stream, source.name, report, False, args.several_roots, names))
    return sentences


def choose_part(sentences: list[Sentence], args: Namespace, report: Report) -> list[Sentence]:
    """The sentences of one part of one rotation, in their old order."""
    if args.fold > args.folds or args.folds < 3:
        raise UserError(
            f"--fold {args.fold} of --folds {args.folds}: at least 3 folds, and no rotation beyond the last"
        )
    folds = assign_folds([tuple(sentence.forms) for sentence in sentences], args.folds, SEED)
    parts = [part_of(fold, args.fold, args.folds) for fold in folds]
    for part in parts:
        if part != args.part:
            report.drop(f"in the {part} part")
    report.facts["fold"] = f"{args.fold} of {args.folds}, seed {SEED}"
    return [sentence for sentence, part in zip(sentences, parts, strict=True) if part == args.part]


def main() -> None:
    """Read, cut, transliterate, write."""
    args = parse_args()
    if (args.fold is None) != (args.part is None):
        raise UserError("--fold and --part go together")
    report = Report()
    sentences = read_all(args, report)
    if args.fold is not None:
        sentences = choose_part(sentences, args, report)
    if args.transliterate:
        latin = transliterator(args.transliterate)
        for sentence in sentences:
            sentence.forms = [latin.form(form) for form in sentence.forms]
            sentence.text = latin.line(sentence.text) if sentence.text else None
        report.facts["transliterated"] = args.transliterate
    report.kept = len(sentences)
    with prepared(args, report) as out:
        write_sentences(sentences, out)


if __name__ == "__main__":
    run_main(main)
