"""Memory that an agent keeps across conversations: extracted, retrieved within budgets, injected safely, tracked."""
