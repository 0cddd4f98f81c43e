"""Rules are data: JSON files that Python and the exported plugin read alike."""
