"""The code hash of a program: it changes when its code does, or that of a module or program it imports.

Snakemake sees neither edits in imported modules nor the difference between a new comment and a new formula. The hash
covers the syntax trees of a script and of everything in `scripts/` and `demo_world/` that it imports, without comments,
docstrings, help texts, log lines and the words of errors, and without the modules that choose a GPU or refuse settings.
"""

import ast
import hashlib
import os
from collections.abc import Collection
from functools import cache
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2]
# The package beside `scripts/` that one program imports.
WORLD = "demo_world"
# Where and when a program works and what it refuses, never what comes out: weeks of training are not made again for an
# edit of these.
PLACEMENT = {"crossalign/runtime/gpus.py", "crossalign/runtime/checks.py"}

# Keywords of calls that hold help texts, and calls whose texts are logs.
HELP = {"help", "epilog", "usage", "formatter_class"}
LOGS = {"print", "debug", "info", "warning", "error", "exception", "critical", "warn"}


@cache
def code_hash(*scripts: str) -> str:
    """The hash of programs in `scripts/`, twelve hexadecimal digits. Name those that a program starts as well."""
    placement = {SCRIPTS / file for file in PLACEMENT}
    files = sorted(set().union(*(closure(SCRIPTS / script, placement) for script in scripts)))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{os.path.relpath(file, SCRIPTS)}\n{scanned(file)[0]}\n".encode())
    return digest.hexdigest()[:12]


def closure(script: Path, without: Collection[Path] = ()) -> set[Path]:
    """The script and all of this project that it imports, directly or not, at the top or inside functions.

    What only modules in `without` import is not among it.
    """
    found: set[Path] = set()
    waiting = [script]
    while waiting:
        file = waiting.pop()
        if file not in found and file not in without:
            found.add(file)
            waiting.extend(scanned(file)[1])
    return found


@cache
def scanned(file: Path) -> tuple[str, list[Path]]:
    """The syntax tree of a file as text, and the library modules and programs that it imports by name."""
    names: set[str] = set()
    text = dump(ast.parse(file.read_text(encoding="utf-8"), filename=str(file)), names)
    # Python looks in a program's folder first, so a program hides a package of the same name.
    ours = {"crossalign", WORLD, *programs(SCRIPTS)}
    return text, [module for name in sorted(names) if name.split(".")[0] in ours for module in modules(name)]


@cache
def programs(folder: Path) -> frozenset[str]:
    """The names by which programs can import each other."""
    return frozenset(file.stem for file in folder.glob("*.py"))


@cache
def modules(name: str) -> list[Path]:
    """The files behind a dotted name: the module or program and the packages around it. A name inside one has none."""
    parts = name.split(".")
    home = SCRIPTS.parent if parts[0] == WORLD else SCRIPTS
    places = [home.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
    files = [file for place in places for file in (place / "__init__.py", place.with_suffix(".py"))]
    return [file for file in files if file.is_file()]


def dump(part: object, names: set[str]) -> str:
    """A syntax tree as text, without words for people; `names` collects what it imports.

    The text is the same in every version of Python, so that results can move between machines: `ast.dump` names fields
    that older versions lack, and some versions end formats within f-strings with an empty text.
    """
    if isinstance(part, list):
        return f"[{', '.join([dump(each, names) for each in part])}]"
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = {name: getattr(part, name, None) for name in part._fields}
    match part:
        case ast.Import():
            names.update(alias.name for alias in part.names)
        case ast.ImportFrom(module=str(module), level=0):
            names.update({module, *(f"{module}.{alias.name}" for alias in part.names)})
            if module == "argparse":
                fields["names"] = [alias for alias in part.names if not alias.name.endswith("HelpFormatter")]
        case ast.Call():
            fields |= ast.iter_fields(without_words(part))
        case ast.Raise(exc=ast.Call()):
            fields["exc"] = without_words(part.exc, raised=True)
        case ast.Assert():
            fields["msg"] = None
        case ast.JoinedStr():
            fields["values"] = [value for value in part.values if getattr(value, "value", None) != ""]
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            if ast.get_docstring(part, clean=False) is not None:
                fields["body"] = part.body[1:]
    shown = [f"{name}={dump(value, names)}" for name, value in fields.items() if value is not None and value != []]
    return f"{type(part).__name__}({', '.join(shown)})"


def without_words(call: ast.Call, raised: bool = False) -> ast.Call:
    """A call without its help texts and, where it logs or makes an error, without texts; what fills them in stays."""
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
    args, keywords = call.args, [each for each in call.keywords if each.arg not in HELP]
    if name == "setting":
        # What a hyper-parameter means, in words.
        args = args[1:]
    if name == "ArgumentParser":
        keywords = [each for each in keywords if each.arg != "description"]
    # What is printed into a file may be a result.
    written = any(each.arg == "file" and getattr(each.value, "attr", "") != "stderr" for each in keywords)
    if raised or name in LOGS and not written or name.endswith(("Error", "Exit")):
        args = [part for arg in args for part in fillings(arg)]
    return ast.Call(call.func, args, keywords)


def fillings(text: ast.expr) -> list[ast.expr]:
    """The parts of an expression that are no literal text: what stands in the braces of a format."""
    match text:
        case ast.Constant(value=str()):
            return []
        case ast.JoinedStr():
            return [part for value in text.values for part in fillings(value)]
        case ast.FormattedValue():
            return fillings(text.value)
        case ast.BinOp():
            return fillings(text.left) + fillings(text.right)
        case ast.IfExp():
            return [text.test, *fillings(text.body), *fillings(text.orelse)]
    return [text]
