"""Online support vector machines for real streams, with River's interface."""

from streamsvm import kernels
from streamsvm.learners.lasvm import LASVMClassifier

__all__ = ["LASVMClassifier", "kernels"]
__version__ = "0.1.0"
