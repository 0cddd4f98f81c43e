"""Experiments: data and a config in, metrics with intervals out; compared, swept and exported."""
