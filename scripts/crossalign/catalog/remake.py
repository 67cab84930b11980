"""The command that makes a table or figure of a run."""

import shlex


def base_command(config: dict) -> str:
    """How Snakemake is called for this run; one with settings of its own names its merged config."""
    run = config["run"]
    profile = "study" if config.get("study") else "demo" if config.get("world") else "gpu"
    own = "" if run in ("demo", "paper") else f" --configfile {shlex.quote(f'results/{run}/config.json')}"
    return f"snakemake --profile profiles/{profile}{own}"


def command_of(item: str, config: dict, made: bool = False) -> str:
    """The command that makes an item, or makes it again."""
    table = "/table" in item
    target = f"results/{config['run']}/{'tables' if table else 'figures'}/{item}.{'html' if table else 'svg'}"
    again = "--force " if made else ""
    return f"{base_command(config)} {again}{shlex.quote(target)}"
