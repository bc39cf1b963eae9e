"""The README and the pages in docs: each code block runs, and prints what the page shows.

The Python blocks of a page run in order in one namespace, in an empty folder that has
`examples/data`. A ``text`` block after a Python block is what it prints: words must agree, numbers
may differ. Lines of ``sh`` blocks that begin with ``streamsvm`` run in the same folder.
"""

import argparse
import importlib.util
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from streamsvm.cli.main import main, parser
from tests.cli import write_reference
from tests.programs import python
from tests.slow import slow
from tests.test_system_pages import PRINTED

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
KAFKA = DOCS / "kafka.md"
KEYED = DOCS / "keyed.md"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
SYSTEMS = [DOCS / "index.md", *sorted((DOCS / "systems").glob("*.md"))]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONAL = {
    "confluent_kafka",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "pandas",
    "polars",
    "prometheus_client",
    "sklearn",
}
# Pages that register a class for the whole process: they run in a process of their own.
REGISTERING = {"new_kernel.md", "new_learner.md", "new_source.md"}

all_pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def examples_of(page):
    """Return (code, what it prints or None) of the Python blocks of a page, and its commands."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    examples, commands = [], []
    for i, (language, text) in enumerate(blocks):
        following = blocks[i + 1] if i + 1 < len(blocks) else ("", "")
        if language == "python":
            examples.append((text, following[1] if following[0] == "text" else None))
        if language == "sh":
            lines = text.replace("\\\n", " ").splitlines()
            commands += [shlex.split(line) for line in lines if line.startswith("streamsvm ")]
    return examples, commands


def words_of(text):
    """Return a text with its numbers replaced, and its white space made equal."""
    text = re.sub(r"-?\d+(?:[\d,.]*\d)?(?:e[-+]?\d+)?", "0", text)
    return " ".join(text.split())


def check_printed(printed, shown):
    pattern = ".*".join(map(re.escape, words_of(shown).split("...")))
    assert re.fullmatch(pattern, words_of(printed)), f"the page shows\n{shown}\nit is\n{printed}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make the folder that the examples run in."""
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@all_pages
def test_python_blocks_run(page, folder, capsys):
    examples, _ = examples_of(page)
    if page in (KAFKA, KEYED) or not examples:
        return
    for package in sorted(OPTIONAL):
        if any(re.search(rf"^\s*(?:from|import) {package}\b", code, re.M) for code, _ in examples):
            pytest.importorskip(package)
    if page.name in REGISTERING:
        run_apart(examples, folder)
        return
    of_system = PRINTED[page.stem] if page in SYSTEMS else ""
    space = {"__name__": page.stem}
    capsys.readouterr()
    for code, shown in examples:
        if of_system and code is examples[-1][0]:
            space = {"__name__": page.stem}
        exec(compile(code, str(page), "exec"), space)
        printed = capsys.readouterr().out
        if shown is not None:
            check_printed(printed, shown)
    assert re.match(of_system, printed, re.DOTALL)


def run_apart(examples, folder):
    script = folder / "page.py"
    script.write_text("\n".join(code for code, _ in examples))
    check_printed(python(script), "\n".join(shown or "" for _, shown in examples))


@all_pages
def test_commands_run(page, folder, capsys):
    for command in examples_of(page)[1]:
        parser().parse_args(command[1:])
        # There is no broker here, and compiling in advance takes minutes.
        if command[1] not in ("consume", "warm"):
            assert main([*command[1:]]) == 0, command


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_name_what_is_there(page):
    text = page.read_text()
    for name in re.findall(r"python3? -m ((?:benchmarks|tests)\.[\w.]*\w)", text):
        assert importlib.util.find_spec(name), f"{page.name}: python -m {name}"
    for path in re.findall(r"python3? ((?:benchmarks|examples|tests)/\S+\.py)", text):
        assert (ROOT / path).is_file(), f"{page.name}: python {path}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_the_command_reference_is_up_to_date():
    assert write_reference.PAGE.read_text(encoding="utf-8") == write_reference.reference()


def test_the_command_reference_has_every_option():
    text = write_reference.PAGE.read_text(encoding="utf-8")
    for name, command in write_reference.subcommands().items():
        assert f"## streamsvm {name}\n" in text
        for action in command._actions:
            if action.help != argparse.SUPPRESS and action.dest != "help":
                assert all(f"`{option}" in text for option in action.option_strings), action


# Kafka: the examples run against a broker, each with a consumer group of its own.

KAFKA_EXAMPLES = re.findall(
    r"## ([^\n]+)\n(?:(?!\n## ).)*?```python\n(.*?)```", KAFKA.read_text(), re.DOTALL
)
KAFKA_PRINTED = {
    "confluent-kafka": "200",
    "kafka-python": "200",
    "aiokafka": "200",
    "quixstreams, and other clients with confluent-kafka's `poll`": "200",
    "Messages of other shapes": "{'share': [0.25]} [True]",
    "Iterators": "3",
    "Labels that come later": "{'held': 0, 'labels_held': 0, 'answered': 200, 'before_event': ",
    "Predictions while the model learns": "True",
}


@pytest.fixture(scope="module")
def broker():
    pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka")
    from tests import brokers

    with brokers.tansu() as address:
        payments = [{"amount": float(i % 7), "fraud": i % 7 > 3} for i in range(200)]
        for topic in ("payments", "orders", "complaints"):
            brokers.make_topic(address, topic, 2)
        brokers.produce(address, "payments", [json.dumps(p).encode() for p in payments], 2)
        keys = [str(i) for i in range(200)]
        labels = [{"complained": payment.pop("fraud")} for payment in payments]
        brokers.produce(address, "orders", [json.dumps(p).encode() for p in payments], 2, keys)
        brokers.produce(address, "complaints", [json.dumps(y).encode() for y in labels], 2, keys)
        yield address


def test_all_kafka_examples_are_here():
    assert {name for name, _ in KAFKA_EXAMPLES} == set(KAFKA_PRINTED)


# A group of each client waits for some seconds.
WAITING = ("kafka-python", "aiokafka", "Labels that come later")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param(*example, id=example[0], marks=slow if example[0] in WAITING else ())
        for example in KAFKA_EXAMPLES
    ],
)
def test_a_kafka_example(name, code, broker, tmp_path, monkeypatch, capsys):
    if "quixstreams" in name:
        pytest.importorskip("quixstreams", reason="pip install quixstreams")
    monkeypatch.chdir(tmp_path)
    # Each is a group of its own: the assignors of the clients do not get on with each other.
    code = re.sub(r'("group[._]id": )"fraud"', rf'\1"group of {name}"', code)
    # Tansu lets a group wait for half a session, which is 45 seconds if nothing is said.
    code = code.replace('"group.id"', '"session.timeout.ms": 6000, "group.id"')
    exec(compile(code.replace("localhost:9092", broker), name, "exec"), {})
    assert capsys.readouterr().out.startswith(KAFKA_PRINTED[name])


def test_the_example_of_models_by_key(broker, tmp_path, monkeypatch, capsys):
    pytest.importorskip("quixstreams", reason="pip install quixstreams")
    monkeypatch.chdir(tmp_path)
    ((code, shown),) = examples_of(KEYED)[0]
    code = code.replace("localhost:9092", broker)
    exec(compile(code, str(KEYED), "exec"), {})
    check_printed(capsys.readouterr().out, shown)
