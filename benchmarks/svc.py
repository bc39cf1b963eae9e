"""The batch solver that the benchmarks compare with."""

from __future__ import annotations

from typing import Any

from sklearn.svm import SVC


def fastest_svc() -> tuple[str, Any]:
    """Return name and class of scikit-learn-intelex's SVC, or of scikit-learn's without it."""
    try:
        from sklearnex import svm
    except ImportError:
        return "SVC", SVC
    return "SVC, intelex", svm.SVC
