"""When an agent is reminded to search and save: texts, policies, moments worth remembering, a behaviour model."""
