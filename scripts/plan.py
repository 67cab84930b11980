"""Say what a run needs before it starts: jobs, GPU and CPU hours, wall time, disk, files to fetch and their terms.

`python scripts/plan.py [FILE …]` merges further config files over config.yaml, as Snakemake's --configfile does.

Example:
    python scripts/plan.py --targets adjust --hardware v100 --gpus 4
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from crossalign.catalog.config import load
from crossalign.catalog.labelled import hub_split, registered_files
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.studied import HUB, PACKAGE, known_models
from crossalign.embedding.memory import embedding_bytes
from crossalign.fetch.listing import missing
from crossalign.fetch.register import Model
from crossalign.papers.all_items import catalog_of
from crossalign.plan.costs import HARDWARE
from crossalign.plan.dag import planned, write_real_run
from crossalign.plan.estimate import Choice, Estimate
from crossalign.plan.outlook import hardware_of, tells_of
from crossalign.plan.show import NAMES, jobs_by_rule, licences, models_by_paper, times
from crossalign.plan.work import model_disk, readable
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.gpus import ask_driver, jobs_per_gpu

ROOT = Path(__file__).resolve().parent.parent
REHEARSAL = Path("results/rehearsal")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=__doc__[__doc__.find("Example:") :],
    )
    parser.add_argument("files", type=Path, nargs="*", help="config files to merge over config.yaml")
    parser.add_argument("--targets", nargs="+", default=["all"], help="as for snakemake: all, anc, data, or a table")
    parser.add_argument(
        "--hardware", choices=HARDWARE, help="whose times to take; default: cpu in the demo, else those of the GPU here"
    )
    parser.add_argument("--gpus", type=number, default=1, help="default: 1")
    parser.add_argument(
        "--share",
        type=number,
        help="jobs on one GPU; default: CROSSALIGN_GPU_SHARE, or as in the profile of the run's name, or 1",
    )
    parser.add_argument("--cores", type=number, help="default: 2 without a GPU, else as in the profiles")
    parser.add_argument("--mbit", type=number, default=100, help="speed of downloads in Mbit/s; default: 100")
    parser.add_argument(
        "--benchmarks",
        type=Path,
        help="benchmark files of an earlier run; default: this run's own, or none where --hardware is given",
    )
    parser.add_argument(
        "--rehearsal",
        type=Path,
        help=f"results of a rehearsal; default: {REHEARSAL}, if it had the full size and such hardware",
    )
    parser.add_argument(
        "--kinds",
        action="store_true",
        help="instead of a plan: results for which one job of each kind has to work on a GPU, for snakemake; "
        "before a rehearsal also notes the jobs of the real run, for the page",
    )
    return parser.parse_args()


def number(text: str) -> int:
    """A whole number above zero."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above zero")
    return int(text)


def assumed(config: dict) -> tuple[str, str]:
    """The hardware whose times are taken where no option says it, and why."""
    if config.get("world"):
        return "cpu", ""
    gpus = [name.strip() for name in ask_driver("--query-gpu=name", "--format=csv,noheader").splitlines()]
    hardware = hardware_of(gpus) if gpus else "h200"
    if not gpus:
        return hardware, f"Times of an {NAMES[hardware]}, as there is no GPU here; --hardware says another."
    if hardware not in gpus[0].lower():
        return hardware, f"Times of an {NAMES[hardware]}, as none are known of {gpus[0]}; --hardware says another."
    return hardware, f"Times of {gpus[0]}, which is here; --hardware says another."


def chosen(given: argparse.Namespace, config: dict, hardware: str) -> Choice:
    """What the options say, and what holds where they are silent."""
    benchmarks = given.benchmarks
    if benchmarks and not benchmarks.is_dir():
        raise UserError(f"--benchmarks: there is no folder {benchmarks}; name one such as results/paper/benchmarks")
    if not benchmarks and not given.hardware:
        benchmarks = Path("results") / config["run"] / "benchmarks"
    profile = read_profile(config["run"])
    cores = given.cores or (2 if hardware == "cpu" else profile["cores"])
    share = 1
    if hardware != "cpu":
        told = "CROSSALIGN_GPU_SHARE" in os.environ
        share = given.share or (jobs_per_gpu(os.environ) if told else profile["resources"]["share"])
    rehearsal = given.rehearsal
    if rehearsal and not rehearsal.is_dir():
        raise UserError(f"--rehearsal: there is no folder {rehearsal}; name one such as results/rehearsal")
    if not rehearsal and not given.hardware and not config.get("world") and tells_of(REHEARSAL, hardware):
        rehearsal = REHEARSAL
    return Choice(given.targets, hardware, given.gpus, cores, given.mbit, benchmarks, min(share, cores), rehearsal)


def read_profile(run: str) -> dict:
    """The profile of the run's name if that is for a machine with a GPU, else that for any such machine."""
    for name in (run, "gpu"):
        file = ROOT / "profiles" / name / "config.yaml"
        found = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if isinstance(found.get("cores"), int) and "gpu" in found.get("resources", {}):
            return found
    return {"cores": 8, "resources": {"gpu": 1}}


def disk(config: dict, estimate: Estimate, models: dict[str, Model]) -> Iterator[str]:
    """What results and downloads take."""
    yield f"Disk, about (keep_models: {config['keep_models']})"
    yield ""
    for kind, (many, size) in model_disk(config, estimate.trainings(), models, estimate.works.shape).items():
        yield f"{readable(size):>10}  {many} models {kind}"
    if largest := estimate.vector_bytes():
        yield f"{readable(largest):>10}  vectors of the largest model, deleted after their comparison"
    loads = [job for name, job in estimate.jobs.items() if job.rule.startswith("download_") and name in estimate.left]
    if not config.get("world"):
        volume = sum(estimate.works.download_bytes(job.rule, job.subject) for job in loads)
        yield f"{readable(volume):>10}  downloads, where the registers say no size from parameters or guessed"


def memory(names: list[str], models: dict[str, Model]) -> Iterator[str]:
    """Models whose vectors one small GPU does not hold."""
    known = {name: model for name in names if (model := models[name]).parameters and model.layers and model.neurons}
    needs = {name: embedding_bytes(model.parameters, model.layers, model.neurons) for name, model in known.items()}
    large = {name: need for name, need in needs.items() if need > 8e9}
    if large:
        yield from (
            "",
            "GPU memory for the vectors of large models, in bf16; what one GPU lacks is spread",
            "",
        )
        yield from (f"{readable(need):>10}  {name}" for name, need in large.items())


def downloads(config: dict, estimate: Estimate, datasets: dict, models: dict[str, Model]) -> Iterator[str]:
    """What is fetched, and under which licences."""
    yield ""
    if config.get("world"):
        yield "Nothing is downloaded: the demo world makes its own data."
        return
    rows = {"download_file": datasets, "download_model": models}
    needed = [rows[job.rule][job.subject] for job in estimate.jobs.values() if job.rule in rows]
    splits = (job.subject.split("/") for job in estimate.jobs.values() if job.rule == "download_labelled")
    needed += [hub_split(config, *split) for split in splits]
    absent = missing(needed, config["downloads"]["folder"])
    yield f"To download: {len(absent)} of {len(needed)} files and models"
    if absent:
        yield ""
        yield from licences(absent)


def main() -> None:
    """Print the plan."""
    given = arguments()
    config = load(given.files)
    catalog = catalog_of(config)
    datasets, models = registered_files(), known_models(config)
    hardware, why = (given.hardware, "") if given.hardware else assumed(config)
    choice = chosen(given, config, hardware)
    sheets = Sheets(catalog)
    graph = planned(given.files, [file for target in choice.targets for file in sheets.target(target)], Path())
    estimate = Estimate(catalog, graph, (datasets, models), choice, ROOT, Path())
    if given.kinds:
        if config.get("rehearsal"):
            write_real_run(config, Path(sheets.results))
        print("\n".join(estimate.one_of_each_kind()))
        return
    named = {item for target in choice.targets for item in sheets.items_of(target)}
    items = [item for item in catalog.items if item in named]
    print(f"Run '{config['run']}', targets: {' '.join(choice.targets)}")
    print(f"Sheets of all models and sets, by what asks for them: {sheets.at('plan')}/*.tsv")
    print(f"{why}\n".lstrip())
    if not {"data", "download"}.issuperset(choice.targets):
        print("\n".join(models_by_paper(catalog, items)), end="\n\n")
    print("\n".join(jobs_by_rule(estimate)), end="\n\n")
    print("\n".join(times(estimate)), end="\n\n")
    print("\n".join(disk(config, estimate, models)))
    if config["models"] in (HUB, PACKAGE):
        lines = list(memory([name for name in estimate.looked_into() if name in models], models))
        print("\n".join(lines), end="\n" if lines else "")
    print("\n".join(downloads(config, estimate, datasets, models)))


def quiet_main() -> None:
    """A reader that has seen enough, such as `head`, is no fault."""
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    run_main(quiet_main)
