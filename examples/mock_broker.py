"""You learn what ``streamsvm consume`` does, without a cluster: this is a broker with a full topic.

Starts librdkafka's mock broker with the 1,250 messages of River's Phishing data in the topic
`pages`, prints the command that learns from them, and waits for Ctrl-C. Give the command in another
terminal. ``python mock_broker.py SECONDS`` ends by itself. Needs ``pip install confluent-kafka``.
"""

import argparse
import contextlib
import json
import time

from confluent_kafka import Producer
from river import datasets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=float, nargs="?", default=1e6, help="end after so many")
    seconds = parser.parse_args().seconds

    producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    for x, y in datasets.Phishing():
        producer.produce("pages", json.dumps(x | {"is_phishing": y}).encode(), partition=0)
    producer.flush()
    print(
        f"streamsvm consume --brokers {broker.host}:{broker.port} --topic pages "
        "--target is_phishing --checkpoint pages.ckpt --idle 3",
        flush=True,
    )
    with contextlib.suppress(KeyboardInterrupt):
        time.sleep(seconds)


if __name__ == "__main__":
    main()
