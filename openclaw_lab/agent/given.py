"""What a person gives to an Agent, checked: what is no such thing is one clear line, before anything is opened."""

from __future__ import annotations

from openclaw_lab.agent.host import HostProfile, host_profile
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ConfigError, TaskError
from openclaw_lab.plugins.schema import schema_fault
from openclaw_lab.plugins.tool import NAMED_OTHERWISE, TOOL_NAME, Tool, is_tool_name


def config_of(given: object) -> LabConfig:
    """A LabConfig as it is, the preset of a name, or the default."""
    if given is None:
        return LabConfig()
    if isinstance(given, str):
        return LabConfig.preset(given)
    if not isinstance(given, LabConfig):
        raise ConfigError("config", f"a {type(given).__name__}", "a LabConfig, or the name of a preset")
    return given


def host_of(given: object, config: LabConfig) -> HostProfile:
    """A host by its name, or a profile of one's own; the config's where none is given."""
    if isinstance(given, str):
        return host_profile(given or config.reminders.host)
    if not isinstance(given, HostProfile):
        raise ConfigError("host", f"a {type(given).__name__}", "a host's name, or a HostProfile")
    return given


def count(verb: str, given: object) -> int:
    """How many turns, for a verb of the session; the verb says how many there may be."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TaskError(verb, given, "a number of turns")
    return given


def tool(given: Tool) -> Tool:
    """A Tool that a model can be offered."""
    if not is_tool_name(given.name):
        raise ConfigError("tools: the name of a tool", str(given.name), TOOL_NAME, NAMED_OTHERWISE)
    if not isinstance(given.description, str) or not callable(given.run):
        raise ConfigError(f"tools: {given.name}", "no description or no function", "a Tool with both")
    if fault := schema_fault(given.parameters):
        raise ConfigError(f"tools: {given.name}: parameters", fault)
    return given
