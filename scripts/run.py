"""Start Snakemake for people: with one progress line, an early look at the page, and after a crash without a lock.

`make demo`, `make small`, `make paper` and `make slurm` use it. Plain `snakemake` does the same jobs.

Example:
    python scripts/run.py --warm -- --profile profiles/demo all
"""

import argparse
import os
import shlex
import sys
from pathlib import Path

import yaml

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.holders import TOKEN, enter

SCRIPTS = Path(__file__).resolve().parent
# Not runs: Snakemake speaks for itself.
QUESTIONS = {"-n", "--dry-run", "--dryrun", "--unlock", "--lint", "--report", "-h", "--help"}


def parse_args() -> tuple[argparse.Namespace, list[str]]:
    """What is for this program, and what follows `--` for Snakemake, which may have a `--` of its own."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [OPTION ...] -- ARGUMENT ...",
        description=__doc__.splitlines()[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=__doc__[__doc__.find("Example:") :],
    )
    again = os.environ.get("CROSSALIGN_AGAIN", "the same command").strip()
    told = "the command that continues the run, to be told; default: CROSSALIGN_AGAIN, which make sets"
    parser.add_argument("--warm", action="store_true", help="jobs start as forks of one process: tools/warm.py")
    parser.add_argument("--after", default="", help="the command to tell at the end; {run} is the name of the run")
    parser.add_argument("--again", default=again, help=told)
    words = sys.argv[1:]
    place = words.index("--") if "--" in words else len(words)
    return parser.parse_args(words[:place]), words[place + 1 :]


def results_folder(arguments: list[str]) -> Path:
    """results/<run> in the working folder, by the config files that Snakemake is going to merge.

    Faults of those files are for Snakemake to tell.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--directory", "-d", default="")
    parser.add_argument("--profile")
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    parser.add_argument("--config", "-C", nargs="*", default=[])
    given, _ = parser.parse_known_args(arguments)
    profile = read_yaml(Path(given.profile) / "config.yaml") if given.profile else {}
    named = given.configfile or profile.get("configfile") or []
    files = ["config.yaml", *([named] if isinstance(named, str) else named)]
    names = ["unnamed", *(read_yaml(Path(file)).get("run") for file in files)]
    names += [value.partition("=")[2] for value in given.config if value.startswith("run=")]
    return Path(given.directory, "results", [str(name) for name in names if name][-1])


def read_yaml(path: Path) -> dict:
    """The settings in a file; none where it cannot be read."""
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return settings if isinstance(settings, dict) else {}


def logger_options(given: argparse.Namespace, arguments: list[str], results: Path) -> list[str]:
    """Options for our logger, which Snakemake finds on the path."""
    path = [str(SCRIPTS / "logger"), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    settings = {
        "results": str(results),
        "again": given.again,
        "unlock": shlex.join(["snakemake", "--unlock", *arguments]),
        "after": given.after.replace("{run}", results.name),
    }
    return ["--logger", "crossalign", *(f"--logger-crossalign-{name}={value}" for name, value in settings.items())]


def unlock_if_dead(folder: Path) -> None:
    """Remove the lock that a killed run has left, and leave a note of this one."""
    try:
        holder, verdict = enter(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot write: {error.strerror}") from None
    if verdict.state == "dead":
        print(f"{verdict.told} The folder is unlocked, and the run goes on.", file=sys.stderr)
    os.environ[TOKEN] = holder.token


def main() -> None:
    """Look at the lock, then become Snakemake."""
    given, arguments = parse_args()
    command = ["snakemake", *arguments]
    if QUESTIONS.isdisjoint(arguments):
        results = results_folder(arguments)
        command[1:1] = logger_options(given, arguments, results)
        unlock_if_dead(results.absolute().parents[1])
    if given.warm:
        command = [sys.executable, str(SCRIPTS.parent / "tools" / "warm.py"), "--", *command]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}") from None


if __name__ == "__main__":
    run_main(main)
