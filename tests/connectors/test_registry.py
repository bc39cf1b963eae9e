"""Avro, JSON and Protobuf by the real client of a schema registry, which is one of this process."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip(
    "confluent_kafka.schema_registry", reason="confluent-kafka[avro]", exc_type=ImportError
)

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connectors import KafkaSource
from connectors.payloads import avro

FIELDS = [{"name": name, "type": "double"} for name in "ab"]
LABEL = [{"name": "y", "type": "boolean"}]


class _Registry(BaseHTTPRequestHandler):
    """Keeps schemas in the server's list; the id of a schema is its number in it."""

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if given["schema"] not in self.server.schemas:
            self.server.schemas.append(given["schema"])
        self._say({"id": self.server.schemas.index(given["schema"])})

    def do_GET(self):
        number = int(self.path.partition("?")[0].rpartition("/")[2])
        self._say({"schema": self.server.schemas[number]})

    def _say(self, answer):
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *given):
        pass


@pytest.fixture
def client():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    server.schemas = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SchemaRegistryClient({"url": f"http://127.0.0.1:{server.server_port}"})
    server.shutdown()
    server.server_close()


def written(client, fields, event):
    schema = json.dumps({"type": "record", "name": "event", "fields": fields})
    return AvroSerializer(client, schema)(event, SerializationContext("t", MessageField.VALUE))


@pytest.mark.parametrize("is_ours", [True, False])
def test_records_of_two_schemas(client, is_ours):
    event = {"a": 1.5, "b": 2.5, "y": True}
    payloads = [
        written(client, [*FIELDS, *LABEL], event),
        # As many bytes of the same types, in another order: the old schema would read them.
        written(client, [*FIELDS[::-1], *LABEL], event),
    ]
    assert payloads[0][:5] != payloads[1][:5] and len(payloads[0]) == len(payloads[1])
    payloads.append(b"\1" + payloads[0][1:])
    decode = AvroDeserializer(client)
    if is_ours:
        decode = avro(schema_of=lambda number: client.get_schema(number).schema_str)
        payloads.append(payloads[0] + b"x")
    rejects, events = [], []
    for batch in KafkaSource(payloads, "y", decode=decode).batches():
        events += [(one.x, one.y) for one in batch.events()]
        rejects += batch.rejects
    assert events == 2 * [({"a": 1.5, "b": 2.5}, True)]
    assert [one.position.row for one in rejects] == list(range(2, len(payloads)))
    assert "the framing of a schema registry" in rejects[0].reason or not is_ours
