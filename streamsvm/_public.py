"""The public names but `kernels`; learners register themselves as they are imported."""

from streamsvm.learners.active import ActiveLearner
from streamsvm.learners.adaptive import AdaptiveSVMClassifier
from streamsvm.learners.ambiguous import AmbiguousSVMClassifier
from streamsvm.learners.compare import Compare
from streamsvm.learners.conformal_sets import ConformalSets
from streamsvm.learners.huller import HullerClassifier
from streamsvm.learners.incremental import IncrementalSVMClassifier
from streamsvm.learners.incremental_one_class import IncrementalOneClassSVM
from streamsvm.learners.incremental_regressor import IncrementalSVMRegressor
from streamsvm.learners.kernel_pa import KernelPAClassifier
from streamsvm.learners.kernel_pegasos import KernelPegasosClassifier
from streamsvm.learners.kernel_perceptron import KernelPerceptronClassifier
from streamsvm.learners.larank import LaRankClassifier
from streamsvm.learners.lasvm import LASVMClassifier
from streamsvm.learners.sbp import SBPClassifier
from streamsvm.learners.selective import Selective
from streamsvm.learners.sgd import SVMSGDClassifier
from streamsvm.learners.sgdqn import SGDQNClassifier
from streamsvm.learners.tracking import TrackingSVMClassifier
from streamsvm.model_files.container import load, save
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.preprocessing.nystroem import Nystroem
from streamsvm.preprocessing.random_fourier import RandomFourierFeatures
from streamsvm.preprocessing.rank_bits import RankBits
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.onnx_export import to_onnx
from streamsvm.run.parts import predict_then_learn_many
from streamsvm.run.warm import warm
from streamsvm.structured import (
    Chain,
    ConceptLabeler,
    LaRankSequenceLabeler,
    OSPASParser,
    SequencePA,
    SequencePerceptron,
)

__all__ = [
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
