"""``python -m streamsvm`` is the `streamsvm` command."""

from streamsvm.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
