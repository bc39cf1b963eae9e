"""Online support vector machines for real streams, with River's interface.

The public names are imported when one of them is first used (PEP 562), which takes some seconds:
the command can answer, and be interrupted, before that.
"""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsvm import kernels
    from streamsvm._public import *  # noqa: F403
    from streamsvm._public_runs import *  # noqa: F403

_LEARNING = [
    "ActiveLearner",
    "AdaptiveSVMClassifier",
    "AmbiguousSVMClassifier",
    "Chain",
    "Compare",
    "ConceptLabeler",
    "ConformalSets",
    "HullerClassifier",
    "IncrementalOneClassSVM",
    "IncrementalSVMClassifier",
    "IncrementalSVMRegressor",
    "KernelPAClassifier",
    "KernelPegasosClassifier",
    "KernelPerceptronClassifier",
    "LASVMClassifier",
    "LaRankClassifier",
    "LaRankSequenceLabeler",
    "Nystroem",
    "OSPASParser",
    "RandomFourierFeatures",
    "RankBits",
    "SBPClassifier",
    "SGDQNClassifier",
    "SVMSGDClassifier",
    "Selective",
    "SequencePA",
    "SequencePerceptron",
    "StandardScaler",
    "TrackingMonitor",
    "TrackingSVMClassifier",
    "load",
    "predict_then_learn_many",
    "save",
    "to_onnx",
    "warm",
]
_RUNS = [
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
"""Names that are imported apart from the others, as that takes more time."""

__all__ = ["kernels", *_LEARNING, *_RUNS]
__version__ = "0.1.0"

# Silent unless the application sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "kernels":
            # Learners ask for it while they are imported themselves: they cannot be loaded here.
            import streamsvm.kernels as module

            return module
        if name in _RUNS:
            from streamsvm import _public_runs

            globals().update({run: getattr(_public_runs, run) for run in _RUNS})
            return globals()[name]
        if not name.startswith("_"):
            load_all()
            if name in globals():
                return globals()[name]
        raise AttributeError(f"module 'streamsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_all() -> None:
    """Import all public names, so that all learners are registered."""
    from streamsvm import _public

    globals().update({name: getattr(_public, name) for name in _LEARNING})


def load_rivers() -> None:
    """Register the transformers of River that model files hold: importing them takes .4 s."""
    import streamsvm.preprocessing.river_parts  # noqa: F401
