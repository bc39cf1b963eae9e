"""You learn how to use the adaptive SVM in a River pipeline, event by event."""

from river import datasets, metrics

from streamsvm import AdaptiveSVMClassifier


def main() -> None:
    model = AdaptiveSVMClassifier()
    metric = metrics.Accuracy() + metrics.BalancedAccuracy()
    for x, y in datasets.Phishing():
        metric.update(y, model.predict_one(x))
        model.learn_one(x, y)
    print(metric)


if __name__ == "__main__":
    main()
