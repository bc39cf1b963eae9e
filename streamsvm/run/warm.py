"""Ahead-of-time compilation of what learners need, for installations, containers and tests."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from river import base, compose

from streamsvm import kernels as all_kernels
from streamsvm._compiling import clock, watchers
from streamsvm.errors import ParameterError
from streamsvm.features.matrices import SparseMatrix
from streamsvm.kernels.registry import check_kernel
from streamsvm.labels.bag_labels import BagTargets
from streamsvm.learners.bases.learner import Learner
from streamsvm.learners.bases.registry import registered_learners
from streamsvm.learners.bases.rehearsal import N_EVENTS, made_up, rehearsal_copy, rehearse_events
from streamsvm.model_files.container import steps_of
from streamsvm.models.model import Kernel
from streamsvm.monitor.tracker import TrackingMonitor
from streamsvm.preprocessing.feature_map import FeatureMap
from streamsvm.preprocessing.nystroem import Nystroem
from streamsvm.preprocessing.random_fourier import RandomFourierFeatures
from streamsvm.preprocessing.rank_bits import RankBits
from streamsvm.preprocessing.standard_scaler import StandardScaler
from streamsvm.run.sentence_feeder import are_sentences
from streamsvm.support.rows import sparse

Compiled = type | base.Base
"""What can be compiled: a learner, a pipeline, a transformer, or the class of one."""

KERNELS: dict[str, Kernel | None] = {
    "rbf": None,
    "linear": all_kernels.Linear(),
    "polynomial": all_kernels.Polynomial(),
}
"""The built-in kernels by name; None is an RBF whose gamma follows the data."""


class WarmProgress(NamedTuple):
    """The progress of `warm`.

    Attributes
    ----------
    done, total
        Configurations: a learner with a kernel, over dense or over sparse rows.
    configuration
        What is compiled now; "" at the end.
    functions
        How many functions this call has compiled so far, not counting those found in the cache.

    """

    done: int
    total: int
    configuration: str
    functions: int


def warm(
    learners: Compiled | Iterable[Compiled] | None = None,
    kernels: Kernel | str | Iterable[Kernel | str | None] | None = None,
    sparse: bool | None = None,
    progress: Callable[[WarmProgress], None] | None = None,
) -> int:
    """Compile what learners need for this machine, and keep it in the cache.

    Compiled code is kept for later processes of the same user on the same machine. After
    ``warm(learner)`` a stream of that learner does not halt for the compiler. All learners with all
    kernels take some minutes; what is in the cache already, a few seconds. After an interruption
    (Ctrl-C), the functions compiled so far stay in the cache.

    Parameters
    ----------
    learners
        A learner with the parameters that it will be used with, a pipeline that ends with one, a
        class, or a list of these; None, the default: all classes, with and without bounds. Of a
        pipeline the steps of streamsvm are compiled: others need nothing.
    kernels
        A name ("rbf", "linear", "polynomial"), a kernel of `streamsvm.kernels`, or a list of these,
        for the classes among `learners`; None, the default: those three. Learners keep their own
        kernel.
    sparse
        Compile for sparse rows (True), for dense rows (False), or for both (None, the default). A
        learner whose own parameter `sparse` is True or False is compiled for that only.
    progress
        Called with a `WarmProgress` before each configuration, after each compiled function, and at
        the end. While it is given, nothing is logged.

    Returns
    -------
    int
        How many functions were compiled; 0: all were in the cache.

    Raises
    ------
    ParameterError
        A learner or kernel is not known.

    Examples
    --------
    >>> import streamsvm
    >>> n_compiled = streamsvm.warm(streamsvm.SVMSGDClassifier(), sparse=False)
    >>> streamsvm.warm(streamsvm.SVMSGDClassifier(), sparse=False)
    0

    """
    todo = list(_configurations(learners, kernels, sparse))
    before, now = clock.functions, (0, "")

    def tell(_: str = "") -> None:
        if progress is not None:
            progress(WarmProgress(now[0], len(todo), now[1], clock.functions - before))

    if progress is not None:
        watchers.append(tell)
    try:
        for done, (name, model) in enumerate(todo):
            now = done, name
            tell()
            _exercise(model)
    finally:
        if progress is not None:
            watchers.remove(tell)
    now = len(todo), ""
    tell()
    return clock.functions - before


def _configurations(
    learners: Compiled | Iterable[Compiled] | None,
    kernels: Kernel | str | Iterable[Kernel | str | None] | None,
    sparse: bool | None,
) -> Iterator[tuple[str, base.Base]]:
    """Yield each configuration to compile: its name, and an untrained learner."""
    # The parameters to compile each class with.
    variants: dict[type, Any] = {known.cls: known.variants for known in registered_learners()}
    variants |= {StandardScaler: ({},), RandomFourierFeatures: ({"gamma": 1.0},), RankBits: ({},)}
    variants[Nystroem] = ({"kernel": all_kernels.RBF(gamma=1.0)},)
    several: Any = KERNELS if kernels is None else kernels
    # One kernel is a named tuple of its parameters.
    if not isinstance(several, Iterable) or isinstance(several, str) or hasattr(several, "_fields"):
        several = [several]
    chosen = [_kernel_of(k) for k in several]
    if learners is None:
        learners = list(variants)
    several = learners if isinstance(learners, (list, tuple, set)) else [learners]
    for learner in chain.from_iterable(_compiled_steps(one, variants) for one in several):
        if isinstance(learner, type) and learner in variants:
            takes = inspect.signature(learner).parameters.keys()
            # Learners of label sequences and `Nystroem` have kernels among their variants.
            has_own = any("kernel" in variant for variant in variants[learner])
            of_all = "kernel" in takes and not has_own
            of_kernel = [{"kernel": k} for k in chosen] if of_all else [{}]
            models = [learner(**v, **k) for k in of_kernel for v in variants[learner]]
        elif type(learner) in variants:
            models = [learner]
        else:
            names = ", ".join(cls.__name__ for cls in variants)
            raise ParameterError(
                f"learners={' '.join(repr(learner).split()):.80}: give one of the classes {names}, "
                "a learner of them, a pipeline that ends with one, or a list of these; None for all"
            )
        for model in models:
            yield from _by_rows(model, sparse)


def _compiled_steps(model: Compiled, known: Collection[type]) -> list[Compiled]:
    """Return the steps of a pipeline to compile; a pipeline without a known learner as it is."""
    if not isinstance(model, compose.Pipeline):
        return [model]
    steps = steps_of(model)
    if not steps or type(steps[-1]) not in known:
        return [steps[-1] if steps else model]
    return [step for step in steps if type(step) in known]


def _kernel_of(kernel: Kernel | str | None) -> Kernel | None:
    if isinstance(kernel, str) and kernel not in KERNELS:
        raise ParameterError(
            f"kernels has {kernel!r}: known names are {', '.join(KERNELS)}; or give kernels"
        )
    if isinstance(kernel, str):
        return KERNELS[kernel]
    if kernel is not None:
        check_kernel(kernel)
    return kernel


def _by_rows(model: base.Base, sparse: bool | None) -> Iterator[tuple[str, base.Base]]:
    """Yield the configurations of a learner for dense and for sparse rows, as asked for."""
    name = type(model).__name__
    kernel = getattr(model, "kernel", None)
    if hasattr(model, "inference"):
        name += f", {model.inference}"
        name += "" if kernel is None else f", {type(kernel).__name__.lower()}"
    elif "kernel" in inspect.signature(type(model)).parameters:
        # By default it is an RBF, or what the learner says.
        kernel = getattr(model, "kernel_", None) if kernel is None else kernel
        name += ", rbf" if kernel is None else f", {type(kernel).__name__.lower()}"
    for bound in ("max_support_vectors", "window"):
        name += f", {bound}" if getattr(model, bound, None) and not are_sentences(model) else ""
    if not hasattr(model, "sparse"):
        yield name, model
        return
    own = model.sparse if getattr(model, "hashing", None) is None else True
    for wanted in (False, True) if sparse is None else (sparse,):
        if own is None:
            kind = "sparse" if wanted else "dense"
            yield f"{name}, {kind} rows", rehearsal_copy(model, sparse=wanted)
    if own is not None:
        yield f"{name}, {'sparse' if own else 'dense'} rows", rehearsal_copy(model)


def _exercise(model: base.Base) -> None:
    """Compile a model by using it: learn, predict, finish and measure generated data."""
    x, labels = made_up(N_EVENTS)
    if are_sentences(model):
        # With a seed: by other draws `finish` may have nothing to do, and compiles less.
        rehearsal_copy(model, seed=0).rehearse()
        return
    if isinstance(model, (StandardScaler, FeatureMap, RankBits)):
        _exercise_transformer(model.clone(), x)
        return
    assert isinstance(model, Learner)
    several = model.most_classes != 2
    if several and model.compiles_classes_apart:
        rehearse_events(rehearsal_copy(model), False)
    rehearse_events(rehearsal_copy(model), several)
    watched = rehearsal_copy(model)
    monitor = TrackingMonitor(watched)
    watched.learn_many(x, labels)
    watched.predict_proba_many(x)
    watched.decision_function_many(x)
    for row, label in zip(x[:3].tolist(), labels.tolist(), strict=False):
        watched.learn_one(dict(enumerate(row)), label)
    monitor.measure()
    if hasattr(watched, "finish"):
        watched.finish()
        monitor.measure()
    if watched.most_classes != 2:
        watched.learn_many(x, np.where(x[:, 2] > 0, "third", "fourth"))
        watched.predict_proba_many(x)
        monitor.measure()
    if isinstance(watched.targets, BagTargets):
        bag = ["third", "fourth"]
        watched.learn_many(x[:2], [bag, bag])
        watched.learn_one(dict(enumerate(x[0].tolist())), bag)


def _exercise_transformer(model: StandardScaler | FeatureMap | RankBits, x: np.ndarray) -> None:
    for row in x[:5].tolist():
        event: dict[Any, float] = dict(enumerate(row))
        # Before the first one is learnt other code does it.
        model.transform_one(event)
        model.learn_one(event)
        model.transform_one(event)
    model.learn_many(x)
    model.transform_many(x)
    if not isinstance(model, RankBits):  # which refuses sparse rows
        model.transform_matrix(SparseMatrix(range(x.shape[1]), sparse(x.astype(np.float32))))
