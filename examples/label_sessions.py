"""You learn how to label each event of a session, in order: which clicks are a bot's.

A session is a sentence, an event a token. What an event is depends on those before it: a bot goes
on as it began, however human a single click looks.
"""

import random

from streamsvm import LaRankSequenceLabeler, SequencePerceptron
from streamsvm.structured.chunks import ChunkScore

ACTIONS = ["search", "view", "cart", "buy"]


def sessions(n, seed):
    """Yield events and labels; a bot takes a session over somewhere, and clicks a little faster."""
    draw = random.Random(seed)
    for _ in range(n):
        events, labels, is_bot = [], [], False
        for _ in range(draw.randrange(3, 20)):
            is_bot = draw.random() < (0.9 if is_bot else 0.08)
            action = draw.choice(ACTIONS[:2] if is_bot and draw.random() < 0.7 else ACTIONS)
            seconds = draw.gauss(1.0 if is_bot else 2.5, 0.7)
            events.append({"action": action, "seconds": seconds, "bias": 1.0})
            begins = not labels or labels[-1] == "O"
            labels.append("O" if not is_bot else "B-bot" if begins else "I-bot")
        yield events, labels


def main():
    models = {
        "LaRank, no event before": LaRankSequenceLabeler(order=0, C=0.05, seed=1),
        "LaRank, two events before": LaRankSequenceLabeler(order=2, C=0.05, seed=1),
        "LaRank, best sequence": LaRankSequenceLabeler("exact", C=0.05, seed=1),
        "perceptron": SequencePerceptron(),
    }
    for name, model in models.items():
        score = ChunkScore()
        for events, labels in sessions(2000, seed=0):
            # Predicted first, learnt afterwards.
            score.update(labels, model.predict_one(events))
            model.learn_one(events, labels)
        print(f"{name:26} {score.accuracy:.1%} of the events, {score.f1:.1%} F1 of the bots' runs")


if __name__ == "__main__":
    main()
