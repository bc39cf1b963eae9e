"""The public names of runs, imported when one of them is first used: sources take time to load."""

from streamsvm.page.live_page import LivePage
from streamsvm.run.bad_events import BadEvents
from streamsvm.run.checkpoint import Checkpoint
from streamsvm.run.keyed import ModelPerKey
from streamsvm.run.late_labels import LateLabels
from streamsvm.run.report import RunReport
from streamsvm.run.runner import Run
from streamsvm.run.serving import Serving
from streamsvm.run.shards import RayWorkers, train_on_shards

__all__ = [
    "BadEvents",
    "Checkpoint",
    "LateLabels",
    "LivePage",
    "ModelPerKey",
    "RayWorkers",
    "Run",
    "RunReport",
    "Serving",
    "train_on_shards",
]
