"""The public names of runs, imported when one of them is first used: sources take time to load."""

from streamsvm.page.live_page import LivePage as LivePage
from streamsvm.run.bad_events import BadEvents as BadEvents
from streamsvm.run.checkpoint import Checkpoint as Checkpoint
from streamsvm.run.keyed import ModelPerKey as ModelPerKey
from streamsvm.run.late_labels import LateLabels as LateLabels
from streamsvm.run.report import RunReport as RunReport
from streamsvm.run.runner import Run as Run
from streamsvm.run.serving import Serving as Serving
from streamsvm.run.shards import RayWorkers as RayWorkers
from streamsvm.run.shards import train_on_shards as train_on_shards
