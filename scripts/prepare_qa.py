r"""Prepare one split of a question-answering set: SQuAD-format JSON in, JSON lines with checked answers out.

For xquad-cross, give the file of the question's language first and that of the context's second; one file if both are
the same.

Example:
    python scripts/prepare_qa.py --format mlqa --question-lang vi --split test --out test.jsonl \
        --source results/demo/downloads/qa/mlqa/MLQA_V1.zip
"""

from argparse import Namespace
from collections.abc import Iterator

from crossalign.data.command import only_source, parser, prepared
from crossalign.data.lines import Source, write_rows
from crossalign.data.qa import TYDI_NAMES, cross_questions, load_questions, prepare_questions
from crossalign.data.report import Report
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main

MEMBERS = {
    "mlqa": "MLQA_V1/{split}/{split}-context-{context}-question-{question}.json",
    "mlqa-translated": "mlqa-translate-train/{context}_squad-translate-train-{split}-v1.1.json",
    "tydiqa": "tydiqa-goldp-v1.1-{split}/tydiqa-goldp-{split}-{name}.json",
}


def parse_args() -> Namespace:
    """The command line."""
    args = parser(__doc__, ("squad", "xquad-cross", *MEMBERS))
    args.add_argument("--question-lang", required=True)
    args.add_argument("--context-lang", help="default: that of the question")
    args.add_argument("--split", choices=("train", "dev", "test"))
    return read_args(args)


def questions_of(args: Namespace) -> Iterator[dict]:
    """The raw questions that the options ask for."""
    if args.format == "xquad-cross":
        if len(args.source) != (1 if args.question_lang == args.context_lang else 2):
            raise UserError("--source: one file if both languages are the same, else the question's and the context's")
        sources = [Source(path) for path in args.source]
        for source, lang in zip(sources, (args.question_lang, args.context_lang), strict=False):
            # Exchanged files would give a valid set of the wrong kind.
            if source.path.name.startswith("xquad.") and not source.path.name.startswith(f"xquad.{lang}."):
                raise UserError(f"--source: {source.path} where the file of language '{lang}' should stand")
        if len(sources) == 1:
            return load_questions(sources[0])
        question, context = sources
        return cross_questions(load_questions(question), load_questions(context), question.name, context.name)
    if args.format != "mlqa" and args.question_lang != args.context_lang:
        raise UserError(f"--format {args.format} has question and context in one language")
    if args.format == "squad":
        return load_questions(Source(only_source(args)))
    if args.split is None:
        raise UserError(f"--format {args.format} needs --split")
    if args.format == "tydiqa" and args.context_lang not in TYDI_NAMES:
        raise UserError(f"--question-lang {args.context_lang}: TyDi QA has {', '.join(TYDI_NAMES)}")
    languages = {"question": args.question_lang, "context": args.context_lang}
    member = MEMBERS[args.format].format(split=args.split, name=TYDI_NAMES.get(args.context_lang), **languages)
    return load_questions(Source(only_source(args), member))


def main() -> None:
    """Read, join, mend, write."""
    args = parse_args()
    args.context_lang = args.context_lang or args.question_lang
    report = Report()
    with prepared(args, report) as out:
        write_rows(prepare_questions(questions_of(args), report), out)


if __name__ == "__main__":
    run_main(main)
