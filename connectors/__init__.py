"""Sources of events with their labels and positions."""

import logging

from connectors.arrow import ArrowSource
from connectors.batch import Batch, Event, Position, Reject
from connectors.conll import ConllSource
from connectors.encoding import Encoder
from connectors.errors import (
    MissingColumnError,
    NoFeaturesError,
    NotReadableError,
    SchemaChangedError,
    SnapshotError,
    SourceAborted,
    SourceChangedError,
    SourceError,
    SourceNotFoundError,
)
from connectors.kafka.kafka_source import KafkaSource
from connectors.kafka.producing import LetterTopic, QuestionTopic, ScoredTopic
from connectors.kafka.record_ids import id_of_key
from connectors.kafka.sentence_messages import KafkaRecordSource, KafkaSentenceSource
from connectors.memory import MemorySource
from connectors.one_hot import one_hot
from connectors.output import Output
from connectors.parquet import ParquetSource
from connectors.sentences import RecordSource, SentenceSource
from connectors.simulated import SimulatedStream
from connectors.source import Source
from connectors.tabular import TabularSource
from connectors.text_files.csv_files import CSVSource
from connectors.text_files.json_lines import JSONLinesSource

# Silent unless the application sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "ArrowSource",
    "Batch",
    "CSVSource",
    "ConllSource",
    "Encoder",
    "Event",
    "JSONLinesSource",
    "KafkaRecordSource",
    "KafkaSentenceSource",
    "KafkaSource",
    "LetterTopic",
    "MemorySource",
    "MissingColumnError",
    "NoFeaturesError",
    "NotReadableError",
    "Output",
    "ParquetSource",
    "Position",
    "QuestionTopic",
    "RecordSource",
    "Reject",
    "SchemaChangedError",
    "ScoredTopic",
    "SentenceSource",
    "SimulatedStream",
    "SnapshotError",
    "Source",
    "SourceAborted",
    "SourceChangedError",
    "SourceError",
    "SourceNotFoundError",
    "TabularSource",
    "id_of_key",
    "one_hot",
]
