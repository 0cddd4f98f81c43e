"""What must not leave the machine is replaced: paths with a user's name, addresses, numbers, keys."""
