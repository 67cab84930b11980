"""The code hash of a program: it changes when its code does, or that of a module or program it imports.

Snakemake sees neither edits in imported modules nor the difference between a new comment and a new formula. The hash
covers the syntax trees of a script and of everything in `scripts/` that it imports, without comments, docstrings and
the examples that --help prints.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2]


@cache
def code_hash(*scripts: str) -> str:
    """The hash of programs in `scripts/`, twelve hexadecimal digits. Name those that a program starts as well."""
    files = sorted(set().union(*(closure(SCRIPTS / script) for script in scripts)))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(SCRIPTS).as_posix()}\n{tree(file)}\n".encode())
    return digest.hexdigest()[:12]


def closure(script: Path) -> set[Path]:
    """The script and all of this project that it imports, directly or not, at the top or inside functions."""
    found: set[Path] = set()
    waiting = [script]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(imports(file))
    return found


@cache
def imports(file: Path) -> tuple[Path, ...]:
    """The library modules and programs that one file imports by name."""
    names: set[str] = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
    # Python looks in a program's folder first, so a program hides a package of the same name.
    ours = {"crossalign", *programs(SCRIPTS)}
    return tuple(module for name in sorted(names) if name.split(".")[0] in ours for module in modules(name))


@cache
def programs(folder: Path) -> frozenset[str]:
    """The names by which programs can import each other."""
    return frozenset(file.stem for file in folder.glob("*.py"))


def modules(name: str) -> list[Path]:
    """The files behind a dotted name: the module or program and the packages around it. A name inside one has none."""
    found = []
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        place = SCRIPTS.joinpath(*parts[:length])
        found += [file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()]
    return found


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


@cache
def tree(file: Path) -> str:
    """The syntax tree as text, without docstrings and examples; comments and line numbers are not in it anyway."""
    # Imports were read before; what is taken out here holds none of the library's.
    module = parsed(file)
    for node in ast.walk(module):
        drop_example(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return dump(module)


def drop_example(node: ast.AST) -> None:
    """Take the epilog out of a call that makes a parser, with the formatter that keeps the epilog's line breaks."""
    if isinstance(node, ast.Call) and any(keyword.arg == "epilog" for keyword in node.keywords):
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("epilog", "formatter_class")]
    elif isinstance(node, ast.ImportFrom) and node.module == "argparse":
        node.names = [alias for alias in node.names if not alias.name.endswith("HelpFormatter")]


def dump(part: object) -> str:
    """A syntax tree as text that is the same in every version of Python, so that results can move between machines.

    `ast.dump` names fields that older versions lack, and some versions end formats within f-strings with an empty text.
    """
    if isinstance(part, ast.JoinedStr):
        part = ast.JoinedStr([value for value in part.values if getattr(value, "value", None) != ""])
    if isinstance(part, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(part) if value is not None and value != [])
        return f"{type(part).__name__}({', '.join(f'{name}={dump(value)}' for name, value in fields)})"
    if isinstance(part, list):
        return f"[{', '.join(map(dump, part))}]"
    return repr(part)
