"""You learn how LaRank learns seven classes in one pass, beside River's softmax regression.

With ``K`` it also has a certificate, an upper bound for its mean duality gap.
"""

from river import datasets, linear_model, metrics, preprocessing, stream

from streamsvm import LaRankClassifier, StandardScaler, TrackingMonitor


def main():
    events = list(stream.shuffle(datasets.ImageSegments(), 2310, seed=0))
    monitor = TrackingMonitor(StandardScaler() | LaRankClassifier(C=10.0, K=5, seed=1), every=500)
    models = {
        "LaRank": StandardScaler() | LaRankClassifier(C=10.0, seed=1),
        "LaRank, K = 5": monitor,
        "softmax": preprocessing.StandardScaler() | linear_model.SoftmaxRegression(),
    }
    for name, model in models.items():
        accuracy = metrics.Accuracy()
        for x, y in events:
            accuracy.update(y, model.predict_one(x))
            model.learn_one(x, y)
        print(f"{name:14} {accuracy}")
    now = monitor.get()
    print(f"mean gap so far {now['averaged_gap']:.3f}, its certificate {now['certificate']:.3f}")
    print(monitor.certificate_reason)


if __name__ == "__main__":
    main()
