"""Structured learning: label sequences, meanings of sentences, concepts of words.

This is what the rest of the package, runs and the command, use of it.
"""

from streamsvm.structured.batches import words_in, words_of
from streamsvm.structured.chain import Chain
from streamsvm.structured.chunks import ChunkScore
from streamsvm.structured.concepts.labeler import ConceptLabeler
from streamsvm.structured.concepts.worlds import judged, read_meant, universe_of
from streamsvm.structured.learner import StructuredLearner
from streamsvm.structured.parser.meaning_score import MeaningScore
from streamsvm.structured.parser.meanings import as_text, read_candidates, read_meaning
from streamsvm.structured.parser.ospas import OSPASParser
from streamsvm.structured.sentences import Sentences, each_of, joined, read_sentences
from streamsvm.structured.sequences.larank import LaRankSequenceLabeler
from streamsvm.structured.sequences.learner import SequenceLearner
from streamsvm.structured.sequences.single_step import SequencePA, SequencePerceptron
from streamsvm.structured.sequences.targets import SequenceTargets

__all__ = [
    "Chain",
    "ChunkScore",
    "ConceptLabeler",
    "LaRankSequenceLabeler",
    "MeaningScore",
    "OSPASParser",
    "Sentences",
    "SequenceLearner",
    "SequencePA",
    "SequencePerceptron",
    "SequenceTargets",
    "StructuredLearner",
    "as_text",
    "each_of",
    "joined",
    "judged",
    "read_candidates",
    "read_meaning",
    "read_meant",
    "read_sentences",
    "universe_of",
    "words_in",
    "words_of",
]
