"""The commands of the command line, a file a group; each adds its own to a parser."""
