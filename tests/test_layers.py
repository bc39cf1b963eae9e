"""The structure that `docs/contributing.md` states."""

import ast
import re
from pathlib import Path

import pytest

from streamsvm.learners.bases.registry import registered_learners

ROOT = Path(__file__).resolve().parents[1]
# From the bottom up; a file may import its own layer and those below it.
LAYERS = [
    {"_compile", "_compiling", "_parameter_checks", "_sources", "errors"},
    {"kernels", "losses"},
    {"support", "confidence"},
    {"solvers"},
    {"monitor"},
    {"page"},
    {"labels", "features", "model_files", "models", "selection"},
    {"preprocessing"},
    {"learners"},
    {"structured"},
    {"run"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
READERS = {"cli", "run"}
RIVERS = {"learners", "preprocessing", "structured", "run", "cli"}
FACES = {"__init__", "__main__", "_public", "_public_runs"}
SOURCES = sorted((ROOT / "streamsvm").rglob("*.py"))
CONNECTORS = sorted((ROOT / "connectors").rglob("*.py"))
USERS_OF_STRUCTURED = {
    "streamsvm._public",
    "streamsvm.run.record_feeder",
    "streamsvm.run.sentence_feeder",
    "streamsvm.cli.sentences",
}
OF_COMPILED = {"_compile", "errors", "solvers", "structured", "support"}
UNPICKLERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
# Of named tuples, of River, and of ctypes.
PRIVATE_OF_OTHERS = {"_asdict", "_fields", "_make", "_replace"}
PRIVATE_OF_OTHERS |= {"_get_params", "_unit_test_params", "_handle", "_name"}


TREES = {path: ast.parse(path.read_text()) for path in [*SOURCES, *CONNECTORS]}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): tree
    for path, tree in TREES.items()
}


def nodes_of(tree, *kinds):
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def froms(tree):
    """Return (module, name) of all that is imported from a module."""
    return [(n.module, alias.name) for n in nodes_of(tree, ast.ImportFrom) for alias in n.names]


def imports(path):
    """Return the modules, and names of modules, that a file imports."""
    found = {alias.name for node in nodes_of(TREES[path], ast.Import) for alias in node.names}
    return found.union(*({of, f"{of}.{name}"} for of, name in froms(TREES[path])))


def part_of(path):
    return path.relative_to(ROOT / "streamsvm").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    part = part_of(path)
    if part in FACES:
        return
    for name in imports(path):
        top, _, rest = name.partition(".")
        imported = rest.split(".")[0]
        if top == "streamsvm" and imported in LEVEL:
            assert LEVEL[imported] <= LEVEL[part], f"{path.name} imports {name}"
        if top == "river":
            assert part in RIVERS, f"{path.name} imports River"
        if top == "connectors":
            assert part in READERS, f"{path.name} imports connectors"


def test_what_all_learners_share_imports_nothing_of_some():
    bases = ROOT / "streamsvm" / "learners" / "bases"
    families = {path.name for path in bases.iterdir() if (path / "__init__.py").exists()}
    assert families == {"exact", "kernel", "linear"}
    above = {family: {family} for family in families}
    above["exact"].add("kernel")
    for path in bases.rglob("*.py"):
        allowed = above.get(path.relative_to(bases).parts[0], set())
        for name in imports(path):
            family = name.removeprefix("streamsvm.learners.bases.").split(".")[0]
            assert family not in families - allowed, f"{path.name} imports {name}"


def test_models_know_rows_of_numbers_only():
    """No names, labels, locks, learners or River: what they use knows none either."""
    low = "_compile _compiling _parameter_checks errors kernels losses support solvers models"
    may = {f"streamsvm.{part}" for part in low.split()} | {
        "streamsvm.model_files.json_values",
        "streamsvm.monitor.certificate",
        "streamsvm.selection.candidates",
    }
    for path in (ROOT / "streamsvm" / "models").rglob("*.py"):
        modules = {name for name, _ in froms(TREES[path])}
        used = {name for name in modules if name.partition(".")[0] in ("streamsvm", "river")}
        wrong = {
            n for n in used - {"streamsvm"} if not any(f"{n}.".startswith(f"{m}.") for m in may)
        }
        assert not wrong, (path.name, wrong)
        assert "support.locked" not in path.read_text(), path.name


def test_structured_learning_is_in_one_place():
    """Others use what its package gives, in few files; it uses what all learners share."""
    users = set()
    for module, tree in MODULES.items():
        names = {name for name, _ in froms(tree)}
        if module.startswith("streamsvm.structured."):
            of_learners = [n for n in names if n.startswith("streamsvm.learners")]
            # Not of one family of learners.
            assert all(re.fullmatch(r"streamsvm\.learners\.bases(\.\w+)?", n) for n in of_learners)
            if "streamsvm._compile" in names:
                # What is compiled is compiled again when something that it imports changes.
                below = {n.split(".")[1] for n in names if n.startswith("streamsvm.")}
                assert below <= OF_COMPILED, module
        elif used := {n for n in names if n.startswith("streamsvm.structured")}:
            if module != "streamsvm.structured":
                assert used == {"streamsvm.structured"}, f"{module}: import from the package"
                users.add(module)
    assert users == USERS_OF_STRUCTURED


def test_every_part_has_a_layer():
    parts = {part_of(path) for path in SOURCES} - FACES
    assert parts <= LEVEL.keys(), "say in LAYERS where the new part belongs"
    assert {"_compile", "kernels", "support", "solvers", "learners", "run", "cli"} <= parts


def test_imports_are_absolute():
    # `imports` reads names from the top; a relative import would slip through.
    for path in TREES:
        assert not any(node.level for node in nodes_of(TREES[path], ast.ImportFrom)), path.name
        calls = [ast.unparse(node.func) for node in nodes_of(TREES[path], ast.Call)]
        wrong = [name for name in calls if name.endswith(("__import__", "import_module"))]
        assert not wrong, path.name


def test_connectors_know_nothing_of_streamsvm():
    assert CONNECTORS
    for path in CONNECTORS:
        assert not [n for n in imports(path) if n.partition(".")[0] in ("streamsvm", "river")]


def test_one_package_says_how_to_compile():
    saying = {
        p.parent.name for p in SOURCES if re.search(r"\bn?jit\b(?!\w)|CPUDispatcher", p.read_text())
    }
    assert saying == {"_compile"}


def test_no_file_unpickles():
    for path in TREES:
        text = path.read_text()
        assert not {name.partition(".")[0] for name in imports(path)} & UNPICKLERS, path.name
        assert not re.search(r"pickle\.loads?\(|allow_pickle=True", text), path.name


def test_no_private_attribute_of_another_object_is_used():
    # numba's dispatchers, and the state of River's transformers, have no public names;
    # Quix Streams tells a step nothing of its partition.
    may = {"_compile", "river_parts.py", "standing.py"}
    for path in TREES:
        assert {path.name, path.parent.name} & may or not list(_private_of_others(path)), path.name


def test_a_public_learner_has_at_most_three_classes_of_ours_above_it():
    # All of them have a lock, are saved, and are reported; those of rows have names of features.
    of_all = {
        "streamsvm.support.locked",
        "streamsvm.model_files.container",
        "streamsvm.monitor.watched",
        "streamsvm.learners.bases.row_learner",
    }
    for learner in registered_learners():
        modules = (cls.__module__ for cls in learner.cls.__mro__[1:])
        above = [name for name in modules if name.startswith("streamsvm.") and name not in of_all]
        assert len(above) <= 3, (learner.name, above)


def test_methods_stand_in_their_classes():
    """No class attribute is a function of another module; `of_dual` and the like decorate."""
    functions = {
        f"{module}.{name}" for module, tree in MODULES.items() for name in _functions(tree)
    }
    assert len(functions) > 1000
    found = [
        f"{module}.{cls.name}: {name}"
        for module, tree in MODULES.items()
        for cls in nodes_of(tree, ast.ClassDef)
        for name in _assigned_in(cls, _origins(tree)) & functions
    ]
    assert not found


def test_learners_and_models_say_what_they_take():
    """Few annotations are `Any`, and few attributes are asked for by name, of others' objects."""
    trees = [
        MODULES[m] for m in MODULES if m.startswith(("streamsvm.learners", "streamsvm.models"))
    ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    given = [getattr(node, name, None) for node in nodes for name in ("annotation", "returns")]
    parts = [part for one in given if one is not None for part in ast.walk(one)]
    called = [getattr(node.func, "id", "") for node in nodes if isinstance(node, ast.Call)]
    assert len(parts) > 5000 and len(called) > 4000
    assert sum(getattr(part, "id", "") == "Any" for part in parts) <= 138
    assert sum(name in ("getattr", "hasattr") for name in called) <= 9


def test_what_runs_ask_for_is_written():
    """Few attributes are asked for by name, and of wrappers only their adapters are known."""
    trees = {
        m: t for m, t in MODULES.items() if m.startswith(("streamsvm.run", "streamsvm.monitor"))
    }
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    called = [getattr(node.func, "id", "") for node in nodes if isinstance(node, ast.Call)]
    assert len(called) > 3000 and sum(name in ("getattr", "hasattr") for name in called) <= 69
    users = [m for m, t in MODULES.items() for _, name in froms(t) if name.endswith("Adapter")]
    assert not users


def test_no_circles():
    """Imports for types count, too."""
    left = {module: _imported(module) for module in MODULES if module != "streamsvm"}
    n = len(left) + 1
    while len(left) < n:
        n, used = len(left), set().union(*left.values())
        left = {m: found & left.keys() for m, found in left.items() if m in used}
        left = {m: found for m, found in left.items() if found}
    assert not left


def _imported(module):
    names = froms(MODULES[module])
    return {name if (name := f"{of}.{one}") in MODULES else of for of, one in names} - {module}


def _functions(tree):
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def _origins(tree):
    """Return the full name of each name that a module imports."""
    return {
        alias.asname or alias.name.partition(".")[0]: f"{of}{alias.name}"
        for node in nodes_of(tree, ast.Import, ast.ImportFrom)
        for of in [f"{node.module}." if isinstance(node, ast.ImportFrom) else ""]
        for alias in node.names
    }


def _assigned_in(cls, origins):
    """Return the full names of what the attributes of a class are, or are made of by calls."""
    assigned = [node.value for node in cls.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    parts = [part for value in assigned if value is not None for part in _parts_of(value)]
    names = [ast.unparse(part).partition(".") for part in parts]
    return {f"{origins[first]}{dot}{rest}" for first, dot, rest in names if first in origins}


def _parts_of(value):
    if isinstance(value, ast.Tuple):
        return [part for element in value.elts for part in _parts_of(element)]
    if isinstance(value, ast.Call):
        return [part for argument in value.args for part in _parts_of(argument)]
    return [value]


def _private_of_others(path):
    """Yield ``other._name`` in a file, but for modules, own classes, and what others call so."""
    own = {"self", "cls", "super()", *(n.name for n in nodes_of(TREES[path], ast.ClassDef))}
    aliases = [alias for node in nodes_of(TREES[path], ast.Import) for alias in node.names]
    own |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
    for node in nodes_of(TREES[path], ast.Attribute):
        is_private = re.match(r"_(?!_)", node.attr) and node.attr not in PRIVATE_OF_OTHERS
        if is_private and (owner := ast.unparse(node.value)) not in own:
            yield f"{owner}.{node.attr}"
