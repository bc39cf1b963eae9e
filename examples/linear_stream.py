"""You learn what linear SVMs can do: fast batches, several classes, and a stream that drifts."""

import time

import numpy as np
from river import datasets, evaluate, metrics

from streamsvm import SGDQNClassifier, StandardScaler, SVMSGDClassifier, TrackingMonitor


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300_000, 20)).astype(np.float32)
    y = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=len(X)) > 0.0

    # Batches: each row is predicted before it is learnt.
    for model in (SVMSGDClassifier(), SGDQNClassifier()):
        model.learn_many(X[:2000], y[:2000])  # compiles
        start = time.perf_counter()
        predicted = model.predict_then_learn_many(X[2000:], y[2000:])
        rows = len(predicted) / (time.perf_counter() - start)
        wrong = np.mean(np.array(predicted) != y[2000:])
        print(f"{type(model).__name__}: {wrong:.1%} errors, {rows / 1e6:.1f} million rows a second")

    # The objective on a sample of the stream, measured every 1,000 rows.
    model = SVMSGDClassifier()
    monitor = TrackingMonitor(model, every=1000)
    for start in range(0, 5000, 1000):
        monitor.learn_many(X[start : start + 1000], y[start : start + 1000])
    print(f"objective {monitor.get()['objective']:.3f}; {monitor.certificate_reason}")

    # Any number of classes, events as dicts.
    model = StandardScaler() | SVMSGDClassifier(l2=1e-3)
    score = evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
    print(f"ImageSegments, seven classes: {score}")

    # A stream that drifts: with a constant rate (power=0) the model follows.
    turned = np.where(np.arange(len(X)) < 150_000, X[:, 0] > 0.0, X[:, 1] > 0.0)
    for power in (1.0, 0.0):
        model = SVMSGDClassifier(l2=1e-2, t0=1000.0, power=power, averaged=False)
        predicted = np.array(model.predict_then_learn_many(X, turned))
        after = np.mean((predicted != turned)[150_000:160_000])
        print(f"power {power:g}: {after:.1%} errors in the 10,000 rows after the drift")


if __name__ == "__main__":
    main()
