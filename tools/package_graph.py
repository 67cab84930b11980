"""Draw the packages of the library and their imports, from the code, as a Mermaid diagram.

Example:
    python tools/package_graph.py --write CONTRIBUTING.md
"""

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "scripts" / "crossalign"
BEGIN, END = "<!-- packages: made by tools/package_graph.py -->", "<!-- end of packages -->"
# From top to bottom. A package may import from its own layer and from those below.
LAYERS = (
    ("what a run shows", ("papers", "report", "progress", "plan")),
    ("what exists and what was found", ("results", "catalog")),
    ("what computes", ("engine", "tasks", "embedding", "analysis", "alignment")),
    ("what reads and makes data", ("data", "fetch")),
    ("the machine", ("runtime",)),
)
LAYER = {package: number for number, (_, packages) in enumerate(LAYERS) for package in packages}

Graph = Mapping[str, set[str]]


def module_name(file: Path) -> str:
    """The dotted name of a file of the library."""
    return ".".join(file.relative_to(LIBRARY.parent).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> Graph:
    """Each module of the library with those it imports, at its top or inside functions; not what only types need."""
    names = {module_name(file): file for file in sorted(LIBRARY.rglob("*.py"))}
    found: dict[str, set[str]] = {}
    for name, file in names.items():
        imported: set[str] = set()
        for node in running(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                # `from package import module` needs the module; `from module import name` the module.
                imported.update(
                    full if (full := f"{node.module}.{alias.name}") in names else node.module for alias in node.names
                )
        found[name] = {other for other in imported if other in names and other != name}
    return found


def running(tree: ast.AST) -> Iterable[ast.AST]:
    """The nodes of a syntax tree that are executed: all but those below `if TYPE_CHECKING`."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")):
            yield from running(node)


def package(module: str) -> str | None:
    """The package of a module, None for the library itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


@cache
def packages() -> Graph:
    """Each package with those it imports from."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, imported in modules().items():
        for other in imported:
            if (mine := package(module)) != (theirs := package(other)) and mine and theirs:
                found[mine].add(theirs)
    return found


def circle(graph: Graph) -> list[str]:
    """One circle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def upward() -> list[str]:
    """Imports of a module from a package that lies above its own."""
    return [
        f"{module} imports {other}"
        for module, imported in modules().items()
        for other in sorted(imported)
        if (mine := package(module)) and (theirs := package(other)) and LAYER[theirs] < LAYER[mine]
    ]


def diagram() -> str:
    """The Mermaid diagram: a box for each layer; arrows that follow from others are left out."""
    lines = ["```mermaid", "flowchart TD"]
    for number, (title, names) in enumerate(LAYERS):
        lines += [
            f'  subgraph layer{number}["{title}"]',
            "    direction LR",
            *(f"    {name}" for name in names),
            "  end",
        ]
    graph = packages()
    for name in LAYER:
        lines += [
            f"  {name} --> {other}" for other in LAYER if other in graph[name] and not implied(graph, name, other)
        ]
    return "\n".join([*lines, "```"])


def implied(graph: Graph, start: str, end: str) -> bool:
    """Whether `end` is reached from `start` by a longer way too."""
    waiting, seen = [other for other in graph[start] if other != end], set()
    while waiting:
        name = waiting.pop()
        if name == end:
            return True
        if name not in seen:
            seen.add(name)
            waiting.extend(graph[name])
    return False


def replaced(text: str) -> str:
    """A document with the diagram between its two markers."""
    before, after = text.split(BEGIN)[0], text.split(END)[-1]
    return f"{before}{BEGIN}\n{diagram()}\n{END}{after}"


def main() -> None:
    """Print the diagram, or write it into a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="document whose markers the diagram goes between")
    document = parser.parse_args().write
    if document:
        document.write_text(replaced(document.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(diagram())


if __name__ == "__main__":
    main()
