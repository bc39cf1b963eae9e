"""Sources of Kafka topics: messages of any client, decoded and checked."""
