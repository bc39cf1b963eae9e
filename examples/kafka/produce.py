"""You produce payments to a topic, some of which are fraud: ``python produce.py HOST:PORT``.

Makes the topics `payments` and `scored`, if they are not there. A second argument is how many
payments to produce (default: until Ctrl-C), a third one how many a second (default 200).
"""

import contextlib
import json
import random
import sys

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic


def payment(rng, number):
    is_fraud = rng.random() < 0.1
    amount, hour = rng.lognormvariate(5.0 if is_fraud else 3.5, 0.8), rng.uniform(0.0, 24.0)
    is_night = float(hour < 6.0)
    return {
        "id": number,
        "amount": round(amount, 2),
        "is_night": is_night,
        "distance": round(rng.expovariate(0.01 if is_fraud else 0.05), 1),
        "fraud": is_fraud or (is_night > 0.0 and amount > 300.0),
    }


def main(brokers, n=10**9, rate=200.0):
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.create_topics(
        [NewTopic(name, 3, 1) for name in ("payments", "scored")]
    ).values():
        with contextlib.suppress(Exception):  # it is there
            future.result()
    producer, rng = Producer({"bootstrap.servers": brokers}), random.Random(0)
    with contextlib.suppress(KeyboardInterrupt):
        for number in range(n):
            value = json.dumps(payment(rng, number)).encode()
            producer.produce("payments", value, key=f"customer {rng.randrange(1000)}")
            producer.poll(1.0 / rate)
    producer.flush()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
