"""What a plugin may hook into, and the plugins that ship with the laboratory."""
