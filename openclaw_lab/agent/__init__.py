"""The hosts that agents run on, and the replay of recorded sessions as those hosts would have run them."""
