"""A knowledge base that loses nothing and finds Chinese from English."""
