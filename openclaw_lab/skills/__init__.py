"""Skills: documents that tell an agent how to do something, and which of them a message calls for."""
