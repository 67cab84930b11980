"""A plan of jobs that do nothing, for benchmarks/slurm_scale.py: the rules, dependencies and groups of the workflow."""

import json
from pathlib import Path

# Rule: [the numbers of the jobs before it, for each of its jobs].
PLAN = json.loads(Path("plan.json").read_text(encoding="utf-8"))


def before(rule):
    """An input function: what the jobs before one of `rule` leave."""
    return lambda wildcards: [f"done/{name}" for name in PLAN[rule][int(wildcards.number)]]


rule all:
    default_target: True
    input:
        [f"done/{rule}/{number}" for rule, jobs in PLAN.items() for number in range(len(jobs))],


for each in PLAN:

    rule:
        name:
            each
        input:
            before(each),
        output:
            f"done/{each}/{{number}}",
        wildcard_constraints:
            number=r"\d+",
        resources:
            mem_mb=1,
            runtime=10,
        shell:
            "touch {output}"
