"""The live page: charts and tables of a monitor, sent to browsers while it watches."""
