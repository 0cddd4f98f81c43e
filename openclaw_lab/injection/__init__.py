"""Is this text trying to take the agent over? Rules, detectors and what they saw."""
