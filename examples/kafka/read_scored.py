"""You read predictions, each once, and print the payments that look like fraud.

``python read_scored.py HOST:PORT`` reads until Ctrl-C, and goes on where it was; a second argument
ends it when nothing came for so many seconds.
"""

import contextlib
import json
import sys

from confluent_kafka import Consumer


def main(brokers, idle=-1.0):
    settings = {"bootstrap.servers": brokers, "group.id": "alarms", "auto.offset.reset": "earliest"}
    # Only what belongs to a checkpoint: without this, predictions come earlier, and some twice.
    consumer = Consumer(settings | {"isolation.level": "read_committed"})
    consumer.subscribe(["scored"])
    n = 0
    with contextlib.suppress(KeyboardInterrupt):
        while (message := consumer.poll(idle)) is not None:
            if message.error() is not None:
                print(message.error(), file=sys.stderr)
                continue
            scored = json.loads(message.value())
            n += 1
            if scored["prediction"]:
                print(f"payment {scored['fields']['id']} of {scored['key']} looks like fraud")
    consumer.close()
    print(f"{n:,} payments were scored")


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
