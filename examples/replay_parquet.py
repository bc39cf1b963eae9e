"""You learn how to replay a Parquet file as a stream, and how to save and load the model."""

from pathlib import Path

import streamsvm
from connectors import ParquetSource
from streamsvm import LASVMClassifier, Run, StandardScaler

FILE = Path(__file__).parent / "data" / "bananas.parquet"


def main() -> None:
    model = StandardScaler() | LASVMClassifier(C=1.0)
    with ParquetSource(FILE, target="label", shuffle_buffer=2000, seed=1) as source:
        report = Run(source, model, finish=True).execute()
    print(f"progressive accuracy {report.accuracy:.2%}, {report.n_support_vectors} support vectors")
    streamsvm.save(model, "bananas.svm")
    print(streamsvm.load("bananas.svm").predict_proba_one({"x1": 0.5, "x2": 0.5}))


if __name__ == "__main__":
    main()
