"""As many jobs as names, each with a GPU: stands for the workflow where a fault has nothing to do with what is computed."""

import os
import sys
from pathlib import Path

ROOT = Path(workflow.basedir).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from crossalign.runtime.cluster import end_earlier_jobs, left_behind, note_run
from crossalign.runtime.workarounds import (
    mend_status_queries,
    run_side_by_side,
    share_gpus_as_told,
    submits_as,
    submitted_before,
    survive_second_sigterm,
)

survive_second_sigterm(logger.warning)
share_gpus_as_told(workflow)
run_side_by_side(workflow, logger.warning)
mend_status_queries(ROOT / "profiles" / "slurm" / "bin", logger.warning)


onstart:
    note_run(Path.cwd(), submits_as(workflow.scheduler))
    end_earlier_jobs(left_behind(Path.cwd(), submitted_before(workflow)))


rule all:
    default_target: True
    input:
        expand("{name}.done", name=config["names"].split(",")),


rule work:
    output:
        "{name}.done",
    resources:
        gpu=1,
        mem_mb=100,
        runtime=30,
    params:
        saving=config.get("saving", 0),
    shell:
        "exec python {workflow.basedir:q}/worker.py {wildcards.name} {output} {params.saving}"
