#!/bin/sh
# Learns from the topic payments, produces each prediction to the topic scored, and serves a page and metrics.
# Further options are passed on: sh learn.sh --idle 10
exec streamsvm consume --brokers "${BROKERS:-localhost:9092}" --group fraud \
    --topic payments --target fraud --exclude id --learner sgd --scale \
    --output-topic scored --output-fields id \
    --checkpoint "${CHECKPOINT:-payments.ckpt}" --checkpoint-seconds 1 \
    --page "${PAGE:-127.0.0.1:8000}" --metrics-host "${METRICS_HOST:-127.0.0.1}" --metrics-port "${METRICS_PORT:-9100}" \
    "$@"
