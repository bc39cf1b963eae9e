"""A model per key: snapshots and logs of events in the state of a stream engine, by key."""
