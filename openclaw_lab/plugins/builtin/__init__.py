"""The plugins that ship with the laboratory; they load by the same route as any other."""
