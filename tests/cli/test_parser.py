"""Wrong arguments: two lines that name what was probably meant."""

import pytest

from streamsvm.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["repley"], "streamsvm: unknown command 'repley', did you mean replay? (choose from "),
        (["replay", "f", "--target", "y", "--lerner=sgd"], "unknown option --lerner, did you mean"),
        (["replay", "f", "--target", "y", "--learner", "lasmv"], "did you mean lasvm? (choose"),
        (["replay", "f", "g", "--target", "y"], "streamsvm replay: too many arguments: g"),
        (["replay", "f", "--target", "y", "--qqqq"], "streamsvm replay: unknown option --qqqq\n"),
        (["warm", "--kernel", "rfb"], "argument --kernel: unknown value 'rfb', did you mean rbf?"),
        (["replay", "f"], "streamsvm replay: the following arguments are required: --target"),
    ],
)
def test_a_wrong_argument(arguments, said, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, err = capsys.readouterr()
    assert end.value.code == 2 and not out
    assert said in err and err.count("\n") == 2
    assert err.splitlines()[1].startswith("usage: streamsvm")


def test_the_usage_names_what_is_required(capsys):
    with pytest.raises(SystemExit):
        main(["predict"])
    assert "usage: streamsvm predict MODEL FILE --output OUT.parquet [options]; " in (
        capsys.readouterr().err
    )
