"""You learn how to classify raw text: words are counted by River, and learnt as sparse rows.

Without arguments it classifies paragraphs of documentation: are they of NumPy or of pyarrow? With a
Parquet file that has columns `text` and `label` it learns these: ``python text_stream.py FILE``.
"""

import inspect
import random
import re
import sys

import numpy
import pyarrow
import pyarrow.parquet as pq
from river import metrics
from river.feature_extraction import BagOfWords

from streamsvm import LASVMClassifier, kernels


def messages():
    if len(sys.argv) > 1:
        table = pq.read_table(sys.argv[1], columns=["text", "label"]).to_pydict()
        return list(zip(table["text"], table["label"], strict=True))
    found = []
    for package in (numpy, pyarrow):
        names = [
            re.compile(rf"\b{word}\b", re.IGNORECASE) for word in ("numpy", "np", "pyarrow", "pa")
        ]
        for _, thing in inspect.getmembers(package, callable):
            for text in (inspect.getdoc(thing) or "").split("\n\n"):
                for name in names:
                    text = name.sub("", text)
                if len(text.split()) > 4:
                    found.append((text, package is pyarrow))
    random.Random(1).shuffle(found)
    return found


def main() -> None:
    # Every new word is a new feature; only nonzero counts are stored. From max_features (1,048,576)
    # on, new words are ignored; hashing=2**18 stores no words at all.
    model = BagOfWords() | LASVMClassifier(kernels.RBF(gamma=0.02), C=10)
    metric = metrics.Accuracy() + metrics.F1()
    for text, label in messages():
        predicted = model.predict_one(text)
        metric.update(label, predicted)
        model.learn_one(text, label)
    learner = model["LASVMClassifier"]
    print(metric)
    print(f"{len(learner.feature_names):,} words, {learner.n_support_vectors:,} support vectors")
    print(learner.memory_parts)


if __name__ == "__main__":
    main()
