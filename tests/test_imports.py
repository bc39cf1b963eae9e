"""What is imported from this repository exists, also where nothing imports it in a usual test run.

Scripts, benchmarks and tests of optional packages are imported by hand or where the package is
there; a name that has gone would be noticed by nobody. Text in strings, docstrings and pages counts
as well: there are programs in it.
"""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = [ROOT / "README.md"]
for folder in ("streamsvm", "connectors", "tests", "benchmarks", "examples", "docs"):
    FILES += [p for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".py", ".md")]
OWN = r"((?:streamsvm|connectors|tests|benchmarks|examples)(?:\.\w+)*)"
FROM = re.compile(rf"\bfrom {OWN} import (?:\(([^)]*)\)|([\w ,]+))")
WHOLE = re.compile(rf"(?:^\s*import|python -m) {OWN}", re.M)


def missing(text):
    """Return the modules, and names of modules, that a text imports, and that do not exist."""
    found = [module for module in WHOLE.findall(text) if file_of(module) is None]
    for module, several, some in FROM.findall(text):
        for part in re.sub("#.*", "", several or some).split(","):
            if (name := part.strip().split(" ")[0]) and not has(module, name):
                found.append(f"{module}.{name}")
    return found


def file_of(module):
    """Return the file of a module; of a folder that has none, the folder."""
    path = ROOT.joinpath(*module.split("."))
    ways = path.with_suffix(".py"), path / "__init__.py", path
    return next((way for way in ways if way.exists()), None)


@cache
def has(module, name):
    if file_of(f"{module}.{name}") is not None:
        return True
    file = file_of(module)
    if file is None or file.is_dir():
        return False
    text = file.read_text(encoding="utf-8")
    # Most names are found so, in a hundredth of the time of parsing.
    quick = re.search(rf"^(?:(?:class|def) {name}\b|{name}(?:: .*)? = )", text, re.M)
    return bool(quick) or name in bound_in(file)


@cache
def bound_in(file):
    """Return the names of a module, those included that it lists as its public ones."""
    nodes, names = list(ast.parse(file.read_text(encoding="utf-8")).body), set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.alias):
            names.add(node.asname or node.name.split(".")[0])
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        lists = ("__all__", "_LEARNING", "_RUNS")
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in lists:
            names |= {text.value for text in ast.walk(node) if isinstance(text, ast.Constant)}
        nodes += ast.iter_child_nodes(node)
    return names


def test_what_is_imported_exists():
    faults = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in FILES
        for name in missing(file.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(faults)


def test_a_name_that_has_gone_is_noticed():
    gone = "from streamsvm.{}errors import {}"  # a form, so that the test above does not find it
    assert missing(gone.format("", "StreamSVMError, Gone")) == ["streamsvm.errors.Gone"]
    several = gone.format("", "(\n    Gone,  # all, and\n    LabelError,\n    Lost as Found,\n)")
    assert missing(several) == ["streamsvm.errors.Gone", "streamsvm.errors.Lost"]
    assert missing(gone.format("gone.", "LabelError")) == ["streamsvm.gone.errors.LabelError"]
    assert missing("python -m benchmarks" + ".gone") == ["benchmarks.gone"]
