"""The `streamsvm` command, one file a subcommand."""
