"""A code hash changes with the code behind a program; planning waits for no large library."""

import shutil
import subprocess
import sys

import pytest

from crossalign.catalog import code_hash as module

PROGRAM = "from crossalign.first import go\n\ngo()\n"


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """A tiny project: a program that imports one module, which imports another inside a function."""
    folder = tmp_path / "scripts"
    package = folder / "crossalign"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (folder / "program.py").write_text(PROGRAM)
    (package / "first.py").write_text(
        '"""First."""\n\n\ndef go():\n    from crossalign import second\n\n    return second.N\n'
    )
    (package / "second.py").write_text("N = 1  # one\n")
    (package / "third.py").write_text("M = 1\n")
    monkeypatch.setattr(module, "SCRIPTS", folder)
    return folder


def forget():
    for cached in (module.code_hash, module.scanned, module.programs, module.modules):
        cached.cache_clear()


def fresh(script="program.py"):
    forget()
    return module.code_hash(script)


HELP = "from argparse import ArgumentParser{more}\n\nArgumentParser(description='It goes.'{epilog})\n"
PLAIN = HELP.format(more="", epilog="")
EXAMPLE = HELP.format(
    more=", RawDescriptionHelpFormatter", epilog=", formatter_class=RawDescriptionHelpFormatter, epilog='Example: go'"
)


@pytest.mark.parametrize(
    ("file", "before", "after", "changes"),
    [
        ("crossalign/second.py", "N = 1\n", "N = 1  # another comment\n\n", False),
        ("crossalign/second.py", "N = 1\n", '"""Now with a docstring."""\n\nN = 1\n', False),
        ("crossalign/second.py", "N = setting('rate', 1)\n", "N = setting('learning rate', 1)\n", False),
        ("crossalign/second.py", "N = setting('rate', 1)\n", "N = setting('rate', 2)\n", True),
        ("crossalign/second.py", "N = 1\n", "N = 2\n", True),
        ("crossalign/third.py", "M = 1\n", "M = 2\n", False),
        ("crossalign/__init__.py", "", "X = 1\n", True),
        ("program.py", PROGRAM, PROGRAM.replace("go()", "go(1)"), True),
        # Words for people do not count; what fills them in does, and so does text that a program works with.
        ("program.py", PLAIN, EXAMPLE, False),
        ("program.py", PLAIN, EXAMPLE.replace("epilog", "add_help=False, epilog"), True),
        ("program.py", "add('--size', help='sice')\n", "add('--size', help='size')\n", False),
        ("program.py", "add('--size', help='size')\n", "add('--sizes', help='size')\n", True),
        ("program.py", "log.info('%d lins', n)\n", "log.info('%d lines', n)\n", False),
        ("program.py", "log.info('%d lines', n)\n", "log.info('%d lines', next(n))\n", True),
        ("program.py", "print(f'{n:.1f} lin' + 's' * (n > 1))\n", "print(f'{n} line' + 'n' * (n > 1))\n", False),
        ("program.py", "print(f'{n} lines')\n", "print(f'{next(n)} lines')\n", True),
        ("program.py", "print('a', file=sys.stderr)\n", "print('b', file=sys.stderr)\n", False),
        ("program.py", "print('a', file=stream)\n", "print('b', file=stream)\n", True),
        ("program.py", "write('a')\n", "write('b')\n", True),
        ("program.py", "raise fault(f'{n} is wrng')\n", 'raise fault(f\'{n} is {"wrong" if n else ""}\')\n', True),
        (
            "program.py",
            "raise UserError(f'{n} is wrng')\n",
            "raise UserError(f'{n}: wrong')\n",
            False,
        ),
        ("program.py", "raise UserError('wrong')\n", "raise OSError('wrong')\n", True),
        ("program.py", "e = ValueError('wrng')\n", "e = ValueError('wrong')\n", False),
        ("program.py", "assert n, 'wrng'\n", "assert n, 'wrong'\n", False),
        ("program.py", "assert n, 'wrong'\n", "assert n + 1, 'wrong'\n", True),
    ],
)
def test_what_changes_a_hash(scripts, file, before, after, changes):
    (scripts / file).write_text(before)
    old = fresh()
    (scripts / file).write_text(after)
    assert (fresh() != old) == changes


@pytest.mark.parametrize(("name", "changes"), [("gpus", False), ("checks", False), ("files", True)])
def test_which_gpu_a_program_takes_does_not_change_its_hash(scripts, name, changes):
    runtime = scripts / "crossalign" / "runtime"
    runtime.mkdir()
    (scripts / "program.py").write_text(f"from crossalign.runtime.{name} import X\n")
    (runtime / f"{name}.py").write_text("from crossalign.third import M\n\nX = M\n")
    old = fresh()
    (scripts / "crossalign" / "third.py").write_text("M = 2\n")
    assert (fresh() != old) == changes


def test_an_edit_in_the_demo_world_makes_the_world_again_and_no_result(root, tmp_path, monkeypatch):
    for name in ("scripts", "demo_world"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "SCRIPTS", tmp_path / "scripts")
    programs = sorted(file.name for file in (tmp_path / "scripts").glob("*.py"))
    forget()
    before = list(map(module.code_hash, programs))
    formats = tmp_path / "demo_world" / "formats.py"
    formats.write_text(formats.read_text().replace("1980", "1981"))
    forget()
    after = map(module.code_hash, programs)
    changed = [name for name, old, new in zip(programs, before, after, strict=True) if old != new]
    # The rule of the demo's models has no code hash: they are made again when they are deleted.
    assert changed == ["make_demo_model.py", "make_world.py"]


def test_modules_without_a_part_in_hashes_exist(root):
    assert all((root / "scripts" / name).is_file() for name in module.PLACEMENT)


def test_a_hash_does_not_depend_on_the_folder(scripts, tmp_path_factory, monkeypatch):
    before = fresh()
    moved = tmp_path_factory.mktemp("elsewhere") / "moved"
    shutil.copytree(scripts, moved)
    monkeypatch.setattr(module, "SCRIPTS", moved)
    assert fresh() == before


def test_a_hash_does_not_depend_on_the_version_of_python(scripts):
    (scripts / "program.py").write_text(
        'class Box:\n    size: int = 1\n\n\ndef show(x, form=None, *more):\n    return f"{x!r} {x:{form}}" f"{x:>3}"\n'
    )
    assert fresh() == "33f8e5e2e083"  # of Python 3.11, 3.12 and 3.13


@pytest.mark.parametrize("line", ["import helper", "from helper import x", "def late():\n    from helper import x"])
def test_programs_may_import_each_other(scripts, line):
    (scripts / "helper.py").write_text("from crossalign.third import M\n\nx = M\n")
    (scripts / "program.py").write_text(f"{line}\n")
    before = fresh()
    (scripts / "crossalign" / "third.py").write_text("M = 2\n")
    behind = fresh()
    (scripts / "helper.py").write_text("from crossalign.third import M\n\nx = -M\n")
    assert len({before, behind, fresh()}) == 3


def test_no_program_imports_from_another(root):
    """So an edit of one program makes only its own jobs again."""
    forget()
    programs = set((root / "scripts").glob("*.py"))
    assert {file.name: module.closure(file) & (programs - {file}) for file in programs} == {
        file.name: set() for file in programs
    }


@pytest.mark.parametrize(
    ("code", "large"),
    [
        ("import crossalign.catalog.sheets", "numpy torch snakemake"),
        ("import crossalign.fetch.listing", "huggingface_hub http.client urllib.request numpy ssl"),
        (
            "from crossalign.papers import all_of; all_of('tables'), all_of('figures')",
            "matplotlib torch pandas scipy transformers",
        ),
    ],
)
def test_planning_waits_for_no_large_library(root, code, large):
    told = f"{code}; import sys; print(*set({large.split()}) & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", told], cwd=root / "scripts", capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
