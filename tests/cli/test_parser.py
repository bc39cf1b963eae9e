"""Wrong arguments: two lines that name what was probably meant."""

import gc
import importlib.metadata
import inspect
import re
import sys

import pytest

from streamsvm import SVMSGDClassifier
from streamsvm.cli import learners
from streamsvm.cli.learners import ADDED_BY_HAND, model_from
from streamsvm.cli.main import parser
from streamsvm.cli.parameters import parameters
from streamsvm.errors import ParameterError
from streamsvm.learners.bases.registry import registered_learners


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["repley"], "streamsvm: unknown command 'repley', did you mean replay? (choose from "),
        (["replay", "f", "--target", "y", "--lerner=sgd"], "unknown option --lerner, did you mean"),
        (["replay", "f", "--target", "y", "--learner", "lasmv"], "did you mean lasvm? (choose"),
        (["replay", "f", "g", "--target", "y"], "streamsvm replay: too many arguments: g"),
        (["replay", "f", "--target", "y", "--qqqq"], "streamsvm replay: unknown option --qqqq\n"),
        (["warm", "--rate", "5"], "unknown option --rate\n"),
        (["warm", "--kernel", "rfb"], "argument --kernel: unknown value 'rfb', did you mean rbf?"),
        (["replay", "f"], "streamsvm replay: the following arguments are required: --target"),
        (["predict"], "\nusage: streamsvm predict MODEL [FILE] [options]; "),
        ([], "\nusage: streamsvm "),
        (["label", "a.txt"], "--learner sequence_larank"),
        (["label-topic", "a.txt"], "--learner sequence_larank"),
        (["evaluate", "x"], "unknown command 'evaluate': use `predict MODEL FILE --target"),
        (["fit", "x"], "unknown command 'fit': use `replay FILE"),
    ],
)
def test_a_wrong_argument(arguments, said, run):
    out, err = run(*arguments, code=2)
    assert said in err and err.count("\n") == 2 and not out
    assert err.splitlines()[1].startswith("usage: streamsvm")


def test_kernels_and_learners_of_modules(tmp_path, monkeypatch):
    (tmp_path / "my_kernels.py").write_text(
        "import typing\nfrom streamsvm import LASVMClassifier, kernels\n"
        "class Flat(typing.NamedTuple):\n    gamma: float\n    other: float = 2.0\n"
        "@kernels.register(Flat, of='dot')\ndef flat(kernel, dot):\n    return kernel.gamma * dot\n"
        "FLAT = Flat(3.0)\nclass Unknown(LASVMClassifier): pass\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))

    def learner_of(*options):
        return model_from(parser().parse_args(["replay", "f", "--target", "y", *options]))[0]

    kernel = learner_of("--kernel", "my_kernels:Flat", "--gamma", "2").kernel
    assert tuple(kernel) == (2.0, 2.0)
    assert learner_of("--kernel", "my_kernels:FLAT").kernel == type(kernel)(3.0)
    assert learner_of("--kernel", "Flat", "--gamma", "1").kernel == type(kernel)(1.0)
    assert type(learner_of("--learner", "streamsvm:SVMSGDClassifier")) is SVMSGDClassifier
    for options, said in [
        (["--kernel", "my_kernels:Flat"], "needs --gamma, too"),
        (
            ["--kernel", "my_kernels:FLAT", "--degree", "2"],
            "--degree: not for --kernel my_kernels:FLAT",
        ),
        (["--kernel", "my_kernels:Sharp"], "has no attribute 'Sharp'"),
        (["--kernel", "my_kernels:typing"], "is not a registered kernel"),
        (["--learner", "my_kernels:Unknown"], "must call register_learner"),
        (["--learner", "nowhere:A"], "No module named 'nowhere'"),
    ]:
        with pytest.raises(ParameterError, match=said):
            learner_of(*options)


def test_a_plug_in_that_fails_is_left_out(monkeypatch, capsys):
    point = importlib.metadata.EntryPoint("mine", "no_such_module", learners.PLUGINS)
    monkeypatch.setattr(learners, "entry_points", lambda group: [point])
    learners.load_plugins()
    assert "plug-in no_such_module is left out" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["replay", "consume", "compare"])
def test_help_shows_the_options_of_the_named_learner(command, run):
    printed = run(command, "--help", "--learner", "lasvm").out
    assert printed == run(command, "--learner=lasvm", "--help").out
    assert printed.startswith(f"usage: streamsvm {command} ") and "Options of lasvm." in printed
    assert "--delta-max N" in printed and "--gamma GAMMA" in printed and "--scale" in printed
    # It is off while the modules of subcommands are imported.
    assert gc.isenabled()


@pytest.mark.parametrize("learner", registered_learners(), ids=lambda one: one.name)
def test_help_shows_what_a_learner_takes_and_nothing_else(learner, run):
    printed = run("replay", "--help", "--learner", learner.name).out
    shown = {name.replace("-", "_") for name in re.findall(r"^  --([\w-]+)", printed, re.M)}
    of_any = {one.name for one in parameters(ADDED_BY_HAND)}
    assert shown & of_any == inspect.signature(learner.cls).parameters.keys() & of_any
    assert ("--clip N" in printed) == (learner.takes == "rows")
    assert ("--template FILE" in printed) == (learner.takes == "sentences")
    assert len(printed.splitlines()) < 300


def test_help_without_a_learner_is_that_of_the_default(run):
    printed = run("replay", "-h").out
    assert "Options of adaptive, the default." in printed and "--delta-max" not in printed


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        ("lasmv", "unknown value 'lasmv', did you mean lasvm? (choose"),
        ("nowhere:A", "No module named 'nowhere'"),
    ],
)
def test_help_for_a_learner_that_is_not_there(learner, said, run):
    assert said in run("replay", "--help", "--learner", learner, code=2).err
