"""The exceptions of streamsvm.

Each of them is a ``StreamSVMError``:

    StreamSVMError
    ├── ParameterError (ValueError)        a constructor argument out of its range
    ├── BadEventError (ValueError)         one event cannot be used; the model is unchanged
    │   ├── FeatureError (TypeError)       a feature that is no finite number
    │   └── LabelError                     a missing label, or one class too many
    ├── CheckpointError (ValueError)       a checkpoint is of another run, or in use
    ├── KeyedStateError (RuntimeError)     the state of a key is damaged, or of another set-up
    ├── ModelBusyError (RuntimeError)      a model is used from inside another call
    ├── ForkedModelError (RuntimeError)    another thread used a model at a fork
    ├── WorkerError (RuntimeError)         a worker of a training cannot start, or dies each time
    └── ModelFileError (ValueError)        a model file cannot be read
        ├── NotAModelFileError             foreign or empty
        ├── DamagedModelFileError          truncated or altered
        ├── NewerModelFileError            written by a later release
        └── UnwritableModelFileError       (OSError) saving failed; an older file is untouched
"""

from __future__ import annotations


class StreamSVMError(Exception):
    """Base of all errors that the library raises on purpose."""


class ParameterError(StreamSVMError, ValueError):
    """A parameter is out of its range; the message names it, the value and the range."""


class BadEventError(StreamSVMError, ValueError):
    """An event cannot be used. The model has not changed."""


class FeatureError(BadEventError, TypeError):
    """A feature is not a finite number; the message names it."""


class LabelError(BadEventError):
    """A label is missing, or is a third class for a binary learner."""


class CheckpointError(StreamSVMError, ValueError):
    """A checkpoint belongs to another run, or another process uses it."""


class KeyedStateError(StreamSVMError, RuntimeError):
    """The state that a stream engine has of a key is damaged, or belongs to another set-up."""


class ForkedModelError(StreamSVMError, RuntimeError):
    """Another thread was using a model when the process was forked: the child cannot use it."""


class ModelBusyError(StreamSVMError, RuntimeError):
    """A model was used from inside another call of it, on the same thread; nothing has changed."""


class WorkerError(StreamSVMError, RuntimeError):
    """A worker of a training on shards cannot be started, or dies again and again."""


class ModelFileError(StreamSVMError, ValueError):
    """A model file cannot be read."""


class NotAModelFileError(ModelFileError):
    """The file is not one of ours."""


class DamagedModelFileError(ModelFileError):
    """The file is truncated, or its content does not match its checksum."""


class NewerModelFileError(ModelFileError):
    """The file was written by a later release in a format that this one does not know."""


class UnwritableModelFileError(ModelFileError, OSError):
    """The model cannot be saved there; an older file is untouched."""
