# %% [markdown]
# # Payment fraud: labels from Kafka that come days later
#
# **You learn** how to train on events whose labels arrive later in a topic of their own, how a
# second process continues from the checkpoint of the first, and what the delay costs.
#
# **You need** the extras `kafka` and `plots`, but no broker: the script starts librdkafka's mock
# broker. It takes about 20 seconds, and a minute more when the learner is compiled first.

# %%
import json
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from confluent_kafka import Consumer, Producer

from connectors import KafkaSource, MemorySource
from streamsvm import Checkpoint, LASVMClassifier, LateLabels, Run, StandardScaler

# %% [markdown]
# ## Payments and chargebacks
#
# The payments are generated: 500 a day for 60 days. Some 3 % are fraud, most of it rather large
# amounts at about 3 o'clock at night, a region with a curved border. After 35 days the fraudsters
# move to 8 o'clock in the evening. A *chargeback* reports a fraud, two days later on average; for
# an honest payment nothing ever comes.

# %%
HISTORY, MOVED, DAYS, PER_DAY = 10, 35, 60, 500
rng = np.random.default_rng(7)
day = np.arange(DAYS * PER_DAY) / PER_DAY
hour, log_amount = 24 * (day % 1), rng.normal(3.5, 1.0, len(day))
distance = np.hypot((hour - np.where(day < MOVED, 3, 20)) / 2.5, (log_amount - 5) / 0.7)
is_fraud = rng.uniform(size=len(day)) < np.where(distance < 1, 0.95, 0.001)
chargeback_day = day + 1 + rng.exponential(1.0, len(day))
clock = 2 * np.pi * hour / 24  # with sine and cosine, 23:59 is close to 0:00
values = np.column_stack([np.sin(clock), np.cos(clock), log_amount]).tolist()
payments = [{"sin_hour": s, "cos_hour": c, "log_amount": a} for s, c, a in values]
labelled = list(zip(payments, is_fraud.tolist(), strict=True))

# %% [markdown]
# ## Two topics
#
# A payment goes to the topic `payments`, with its number as the message's key; its chargeback goes
# to `chargebacks`, with the same key. `send` sends the messages of one day. It is called when the
# model has seen the day before, so that weeks pass in seconds.

# %%
producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
for topic in ("payments", "chargebacks"):
    producer.list_topics(topic, timeout=10)  # the mock broker makes a topic when asked for it


def send(today):
    for i in np.flatnonzero(is_fraud & (chargeback_day.astype(int) == today) & (day >= HISTORY)):
        producer.produce("chargebacks", '{"fraud": true}', key=str(i), partition=0)
    for i in np.flatnonzero(day.astype(int) == today):
        producer.produce("payments", json.dumps(payments[i]), key=str(i), partition=0)
    producer.flush()


to_send = list(range(HISTORY, DAYS))
send(to_send.pop(0))

# %% [markdown]
# ## Learn as labels come
#
# `LateLabels` holds each payment and its prediction until the chargeback comes. A payment without
# one after a week (`patience`) is learnt as honest (`default`). The first ten days are history with
# known labels: without them, the model would know nothing but frauds in its first week. Frauds are
# rare, so `class_weight` makes each count five times. The first run ends half way. The second one
# could be another process: it finds model, held payments and offsets in the checkpoint.


# %%
def learn(source, **options):
    """Learn from a source; return counts of payments, frauds found, missed, and false alarms."""
    learner = LASVMClassifier(C=10, class_weight={True: 5}, max_support_vectors=500)
    model = StandardScaler() | learner
    Run(MemorySource(labelled[: HISTORY * PER_DAY]), model).execute()
    counts = []

    def after_batch(progress):
        pairs = run.score.pairs  # by the true label and the predicted one
        counts.append((progress.rows, pairs[True, True], pairs[True, False], pairs[False, True]))
        if to_send and progress.rows == PER_DAY * (to_send[0] - HISTORY):
            send(to_send.pop(0))

    run = Run(source, model, on_progress=after_batch, **options)
    run.execute()
    return counts


config = {"bootstrap.servers": f"{broker.host}:{broker.port}", "group.id": "fraud"}
config |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
config |= {"session.timeout.ms": 6000, "fetch.wait.max.ms": 10}
topics = {"topics": ["payments", "chargebacks"], "labels": "chargebacks"}
path, late_counts = tempfile.mkdtemp() + "/fraud.ckpt", []
for limit in (12_500, None):
    late = LateLabels(patience=7 * PER_DAY, default=False)
    # idle=2: the run ends when nothing has come for two seconds.
    with KafkaSource(Consumer(config), "fraud", **topics, idle=2, timeout=0.02) as source:
        late_counts += learn(source, late=late, checkpoint=Checkpoint(path), limit=limit)
    print(f"{late_counts[-1][0]:,} payments, {late.counts['answered']} chargebacks so far")

# %% [markdown]
# ## What the delay costs
#
# The same payments once more, each with its label at once, which no bank has: about 95 % of the
# frauds are found, and 70 % of the alarms are right. With chargebacks it is about 90 % and a third.
# After the move, no new fraud is known until its chargeback comes. The share found falls once more
# a week later, when the honest payments of those days are learnt.

# %%
at_once = learn(MemorySource(labelled[HISTORY * PER_DAY :]))
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
ends = np.arange(2, DAYS - HISTORY + 1, 2)  # in days: a point for every two
for name, counts in (("labels at once", at_once), ("chargebacks as they come", late_counts)):
    seen, *sums = np.array(counts).T
    found, missed, false = (np.interp(ends, seen / PER_DAY, each) for each in sums)
    recall, precision = found[-1] / (found + missed)[-1], found[-1] / (found + false)[-1]
    print(f"{name}: {recall:.0%} of the frauds found, {precision:.0%} of the alarms right")
    axes.plot(ends[1:] + HISTORY, np.diff(found) / np.diff(found + missed), label=name)
axes.axvline(MOVED, color="grey", linestyle=":")
axes.set(xlabel="day on which the label came", ylabel="share of the frauds found", ylim=(0, 1.02))
axes.legend(loc="lower left")
figure.savefig("fraud_late_labels.png", dpi=100)
