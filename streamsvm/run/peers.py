"""Where the other members of a consumer group have got to, by their checkpoints."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from streamsvm.errors import CheckpointError, ModelFileError
from streamsvm.model_files import container as model_file


def offsets_of(pattern: str, own: Path) -> dict[str, int]:
    """Return the next unread offset of each partition, by the checkpoints of all other members.

    A checkpoint and the offsets in it are written in one step, the broker is told afterwards. If a
    member dies between the two, only its checkpoint tells what it has learnt.

    `pattern` is one of paths such as ``checkpoints/*.ckpt``; `own` is the checkpoint of this run,
    which is left out.
    """
    offsets: dict[str, int] = {}
    for name in sorted(glob.glob(pattern)):
        if os.path.abspath(name) == os.path.abspath(own):
            continue
        try:
            about = model_file.read(Path(name))[1]
            place = about["run"]["place"]
            snapshot = place["snapshot"] or {}
            for partition, offset in snapshot.get("offsets", {}).items():
                offsets[partition] = max(offset, offsets.get(partition, 0))
        except (ModelFileError, OSError, LookupError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{name}, one of peers={pattern!r}, does not tell what its member has learnt "
                f"({error}): name checkpoints of the group's members only, or remove it"
            ) from error
    return offsets
