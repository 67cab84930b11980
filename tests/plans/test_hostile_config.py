"""Nothing in a config or in a folder's name is ever run by a shell: it is refused, or handed on as it is."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
import yaml
from tests.workflow import snakemake

# Every way in which a shell could be talked into something, and letters beyond ASCII. No slash: it is one folder.
HOSTILE = (
    'it\'s "a" $(touch pwned) `touch pwned`; touch pwned & touch pwned | tee pwned > pwned é漢 $HOME * ? #x %41 \\'
)
# Few items that need every program.
ITEMS = ["align-predict/figure1", "adjust/table2", "adjust/figure1", "anc/figure4"]
ITEMS += ["talk/figure2", "talk/figure3", "talk/table3"]
WORDS = "1\tBonjour\t_\tINTJ\t_\t_\t0\troot\t_\t_\n2\tmonde\t_\tNOUN\t_\t_\t1\tvocative\t_\t_\n\n"
TREES = "".join(f"# sent_id = {number}\n# text = Bonjour monde\n{WORDS}" for number in range(3))


@pytest.fixture
def project(root, tmp_path):
    """The workflow in a folder with a hostile name, beside a mirror and models in such folders."""
    folder = tmp_path / HOSTILE
    folder.mkdir()
    for name in ("rules", "demo_world", "tools", "resources", "envs", "profiles", "docs"):
        (folder / name).symlink_to(root / name)
    # Both Snakemake and the library take the folder of the real files for that of the workflow.
    (folder / "config").mkdir()
    for name in ("Snakefile", "config.yaml"):
        (folder / name).write_bytes((root / name).read_bytes())
    shutil.copytree(root / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def settings(folder):
    """A config whose free text is all hostile."""
    return {
        "downloads": {
            "folder": f"down {HOSTILE}",
            "lock": f"{HOSTILE}.lock",
            "mirror": f"file://{folder}/mirror {HOSTILE}",
            "mirror_checksums": "mirror",
        },
    }


def pwned(folder):
    return [str(path) for path in folder.rglob("pwned*")]


def commands(done):
    """One command of each program in a dry run."""
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for line in done.stdout.splitlines():
        if program := re.search(r'"\$SCRIPTS"/(\w+)\.py', line):
            found.setdefault(program[1], line.strip().removeprefix("Shell command:").strip())
    return found


def recorded(command, folder):
    """What a command hands to its program: run by bash, with programs that only write their arguments down."""
    tools, record = folder / "tools", folder / "record"
    tools.mkdir(exist_ok=True)
    (tools / "python").write_text('#!/bin/sh\nprintf "%s\\0" "$@" > "$RECORD"\n')
    (tools / "python").chmod(0o700)
    words = shlex.split(command)
    log = folder / words[words.index(">") + 1 if ">" in words else -2].removeprefix(">")
    log.parent.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "RECORD": str(record)}
    environment |= {"SCRIPTS": "scripts", "RESULTS": "results/paper"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return record.read_bytes().decode().split("\0")[:-1]


def told(arguments):
    """The words of a command line, and for settings in JSON their values."""
    for word in arguments:
        values = json.loads(word).values() if word.startswith("{") else [word]
        for value in values:
            yield from map(str, value if isinstance(value, list) else [value])


def studied(project):
    """The settings of a study of a model in a hostile folder."""
    folder = project / f"studied {HOSTILE}"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "num_hidden_layers": 4, "hidden_size": 8}')
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).touch()
    entry = {"folder": folder.name, "layers": 4, "neurons": 8}
    return {"study": {"models": {"mine": entry}}, "talk": {"base": "mine"}}


def test_every_program_gets_hostile_names_as_they_are(project, tmp_path):
    config = settings(project) | {"items": ITEMS, "seeds": [1], "anc": {"norm_models": "pretrain"}}
    entry = {
        "hub": "own/set",
        "revision": "main",
        "task": "ner",
        "languages": ["wo"],
        "splits": {"test": f"a {HOSTILE}"},
    }
    entry |= {"licence": HOSTILE, "columns": {"tokens": HOSTILE}, "labels": {"a": HOSTILE}}
    config |= {"datasets": {"mine": entry}, "align-predict": {"domains": {"ner": ["wikiann_en", "mine_wo"]}}}
    config |= studied(project)
    done = snakemake(project, project, "--dry-run", "--cores", "1", "--printshellcmds", "--", "all", config=config)
    found = commands(done)
    texts = [file.read_text(encoding="utf-8") for file in (project / "rules").glob("*.smk")]
    named = {name for text in texts for name in re.findall(r'"\$SCRIPTS"/(\w+)\.py', text)}
    # The demo's world and models have no free text.
    assert named - set(found) == {"make_world", "make_demo_model"}
    place = tmp_path / "elsewhere"
    place.mkdir()
    for program, command in found.items():
        arguments = recorded(command, place)
        script = next(word for word in arguments if word.endswith(f"/{program}.py"))
        assert script == f"scripts/{program}.py"
        # What was not cut apart keeps its quotation marks; a piece of a name would begin or end elsewhere.
        for word in told(arguments):
            assert ("touch" in word) == (HOSTILE in word), (program, word)
        # No more and no fewer names than Snakemake was asked to put there.
        assert "".join(arguments).count("touch pwned") == command.count("touch pwned")
    downloading = recorded(found["download_file"], place)
    assert downloading[downloading.index("--downloads") + 1] == config["downloads"]["folder"]
    assert {config["downloads"]["lock"], config["downloads"]["mirror"]} <= set(told(downloading))
    assert pwned(tmp_path) == []


def test_jobs_run_in_folders_with_hostile_names(project, tmp_path):
    config = settings(project) | {"items": ["align-predict/table6"]}
    mirror = project / f"mirror {HOSTILE}"
    source = mirror / "ud" / "fr_pud" / "test.conllu"
    source.parent.mkdir(parents=True)
    source.write_text(TREES, encoding="utf-8")
    checksum = hashlib.sha256(source.read_bytes()).hexdigest()
    (mirror / "SHA256SUMS").write_text(f"{checksum}  ud/fr_pud/test.conllu\n")
    made = "results/paper/data/trees/fr_pud/test.conllu"
    done = snakemake(project, project, "--cores", "1", "--", made, config=config)
    logs = "\n".join(path.read_text() for path in project.glob("results/**/*.log"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert (project / config["downloads"]["folder"] / "ud/fr_pud/test.conllu").read_text(encoding="utf-8") == TREES
    assert "monde" in (project / made).read_text(encoding="utf-8")
    assert json.loads((project / made).with_name("test.report.json").read_text())["kept"] == 3
    assert pwned(tmp_path) == []


def test_slurm_gets_commands_as_scripts(root):
    # Otherwise the executor (2.8.0) puts them between double quotes of a shell command, and `$()` in the name of the
    # project's folder is run where jobs are submitted.
    profile = yaml.safe_load((root / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    assert profile["slurm-pass-command-as-script"] is True


def test_a_config_may_be_longer_than_a_command_line(root, tmp_path):
    config = {"reasons": {"anc-deep": f"{HOSTILE} " + "x" * 200_000}}
    made = "results/paper/config.json"
    done = snakemake(root, tmp_path, "--cores", "1", "--", made, config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / made).read_text(encoding="utf-8"))["reasons"] == config["reasons"]


def test_a_wrong_variable_is_told_without_a_traceback(root, tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSALIGN_GPU_SHARE", "two")
    done = snakemake(root, tmp_path, "--cores", "1", "--dry-run", "--", "results/paper/config.json")
    assert done.returncode == 1 and "CROSSALIGN_GPU_SHARE=two: the number of programs per GPU" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
