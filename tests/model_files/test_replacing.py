"""Files that take the place of others: permissions, links, and what killed writers leave."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from streamsvm import LASVMClassifier
from streamsvm.errors import UnwritableModelFileError
from streamsvm.model_files.replacing import replacement, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_permissions_are_kept(tmp_path, mode):
    path = tmp_path / "m.svm"
    write(path, b"old")
    path.chmod(mode)
    write(path, b"new")
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == mode


def test_new_files_have_the_permissions_of_new_files(tmp_path):
    (tmp_path / "other").touch()
    write(tmp_path / "m.svm", b"")
    assert (tmp_path / "m.svm").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("is_there", [True, False])
def test_a_symbolic_link_stays_one(tmp_path, is_there):
    (tmp_path / "models").mkdir()
    target, link = tmp_path / "models" / "v1.svm", tmp_path / "m.svm"
    link.symlink_to(Path("models") / "v1.svm")
    if is_there:
        target.write_bytes(b"old")
    LASVMClassifier().save(link)
    assert link.is_symlink() and target.read_bytes().startswith(b"ARROW1")
    assert not target.is_symlink() and os.listdir(target.parent) == ["v1.svm"]


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnwritableModelFileError, match=r"m to .*pipe: .* is not a regular file"):
        write(pipe, b"new", "m")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(UnwritableModelFileError, match="is not a regular file"):
        write(tmp_path, b"new")


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing(tmp_path, error):
    path = tmp_path / "m.svm"
    write(path, b"old")
    with pytest.raises(type(error)), replacement(path) as file:
        file.write(b"new")
        raise error
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["m.svm"]


def test_what_a_killed_writer_left_is_removed_and_a_living_one_is_let_alone(tmp_path):
    path = tmp_path / "m.svm"
    # Not ours: an editor's file, and the writer of another path.
    others = {".m.svm.swp", ".m.svm", ".other.svm.abcdefgh.partial"}
    for name in others:
        (tmp_path / name).touch()
    code = (
        "import sys, time\n"
        "from streamsvm.model_files.replacing import replacement\n"
        "with replacement(sys.argv[1]) as file:\n"
        "    print('writing', flush=True); sys.stdin.readline()"
    )

    def writer():
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout.readline() == "writing\n"
        return process

    killed, living = writer(), writer()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(os.listdir(tmp_path)) == len(others) + 2
    write(path, b"new")
    assert len(os.listdir(tmp_path)) == len(others) + 2  # the new file, and the living writer's
    living.communicate("\n")
    assert living.returncode == 0 and path.read_bytes() == b""
    assert set(os.listdir(tmp_path)) == others | {"m.svm"}
