"""The public names but `kernels`; learners register themselves as they are imported."""

from streamsvm.learners.active import ActiveLearner as ActiveLearner
from streamsvm.learners.adaptive import AdaptiveSVMClassifier as AdaptiveSVMClassifier
from streamsvm.learners.ambiguous import AmbiguousSVMClassifier as AmbiguousSVMClassifier
from streamsvm.learners.compare import Compare as Compare
from streamsvm.learners.conformal_sets import ConformalSets as ConformalSets
from streamsvm.learners.huller import HullerClassifier as HullerClassifier
from streamsvm.learners.incremental import IncrementalSVMClassifier as IncrementalSVMClassifier
from streamsvm.learners.incremental_one_class import (
    IncrementalOneClassSVM as IncrementalOneClassSVM,
)
from streamsvm.learners.incremental_regressor import (
    IncrementalSVMRegressor as IncrementalSVMRegressor,
)
from streamsvm.learners.kernel_pa import KernelPAClassifier as KernelPAClassifier
from streamsvm.learners.kernel_pegasos import KernelPegasosClassifier as KernelPegasosClassifier
from streamsvm.learners.kernel_perceptron import (
    KernelPerceptronClassifier as KernelPerceptronClassifier,
)
from streamsvm.learners.larank import LaRankClassifier as LaRankClassifier
from streamsvm.learners.lasvm import LASVMClassifier as LASVMClassifier
from streamsvm.learners.sbp import SBPClassifier as SBPClassifier
from streamsvm.learners.selective import Selective as Selective
from streamsvm.learners.sgd import SVMSGDClassifier as SVMSGDClassifier
from streamsvm.learners.sgdqn import SGDQNClassifier as SGDQNClassifier
from streamsvm.learners.tracking import TrackingSVMClassifier as TrackingSVMClassifier
from streamsvm.model_files.container import load as load
from streamsvm.model_files.container import save as save
from streamsvm.monitor.tracker import TrackingMonitor as TrackingMonitor
from streamsvm.preprocessing.nystroem import Nystroem as Nystroem
from streamsvm.preprocessing.random_fourier import RandomFourierFeatures as RandomFourierFeatures
from streamsvm.preprocessing.rank_bits import RankBits as RankBits
from streamsvm.preprocessing.standard_scaler import StandardScaler as StandardScaler
from streamsvm.run.onnx_export import to_onnx as to_onnx
from streamsvm.run.parts import predict_then_learn_many as predict_then_learn_many
from streamsvm.run.warm import warm as warm
from streamsvm.structured import Chain as Chain
from streamsvm.structured import ConceptLabeler as ConceptLabeler
from streamsvm.structured import LaRankSequenceLabeler as LaRankSequenceLabeler
from streamsvm.structured import OSPASParser as OSPASParser
from streamsvm.structured import SequencePA as SequencePA
from streamsvm.structured import SequencePerceptron as SequencePerceptron
