"""The KnowHub plugin."""
