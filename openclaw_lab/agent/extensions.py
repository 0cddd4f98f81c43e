"""What extends an agent: plugins (tools, hooks, skills), tools and skills given by hand; one view of them all.

It asks them anew at every turn, so that a plugin or a skill that was loaded again is the one that is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from openclaw_lab.agent import given
from openclaw_lab.agent.memory import is_knowhub
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ConfigError
from openclaw_lab.given import check, listed
from openclaw_lab.plugins.builtin.knowhub.plugin import PLUGIN_ID, knowhub_entry
from openclaw_lab.plugins.entry import PluginEntry
from openclaw_lab.plugins.functions import tool_of
from openclaw_lab.plugins.hooks import HookBus
from openclaw_lab.plugins.loader import Plugins, load_plugins
from openclaw_lab.plugins.settings import HostConfig, host_config
from openclaw_lab.plugins.tool import Tool

if TYPE_CHECKING:
    from openclaw_lab.agent.skilled import SkillMode
    from openclaw_lab.skills.registry import SkillRegistry

PluginConfig = Mapping[str, Any] | HostConfig | str | Path | None


class Extensions:
    """Plugins, tools and skills of one agent. What it loaded itself it also stops; what it was given stays running."""

    def __init__(
        self,
        plugins: Iterable[object],
        skills: object,
        tools: Iterable[Tool | Callable[..., Any]],
        config: LabConfig,
        plugin_config: PluginConfig = None,
        environment: Mapping[str, str] | None = None,
        skill_mode: SkillMode = "match",
        memory: object = None,
    ) -> None:
        sources = listed("plugins", plugins)
        plugin_config = None if plugin_config is None else host_config(plugin_config)  # refused without plugins too
        self._own = tuple(
            given.tool(each) if isinstance(each, Tool) else tool_of(each) for each in listed("tools", tools)
        )
        self._config, self._mode = config, skill_mode
        to_load = [_source(each, config, plugin_config, memory) for each in sources if _is_source(each)]
        self.loaded: Plugins | None = None
        if to_load:
            reserved = [each.name for each in self._own]
            self.loaded = load_plugins(*to_load, config=plugin_config, environment=environment, reserved=reserved)
        ready = [each for each in sources if isinstance(each, Plugins)]
        self.plugins = (*ready, *([self.loaded] if self.loaded else ()))
        others = [each for each in sources if not _is_source(each) and not isinstance(each, Plugins)]
        self.buses = (*(each.bus for each in self.plugins), *map(_bus, others))
        self._skills = skills
        self._folders = tuple(path for each in self.plugins for path in each.skills)
        self._registry = _registry(skills, self._folders)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of now."""
        if not self.plugins:
            return self._own
        return (*self._own, *(tool for each in self.plugins for tool in each.tools.values()))

    # --- skills ---

    @property
    def registry(self) -> SkillRegistry | None:
        """The skills given by hand, and those that the plugins of now bring along; None when there are none."""
        folders = tuple(path for each in self.plugins for path in each.skills)
        if folders != self._folders:
            self._registry, self._folders = _registry(self._skills, folders), folders
        return self._registry

    def skill_section(self, message: str) -> str:
        """What the prompt says of skills, for a message."""
        if not self._skills and not self.plugins:
            return ""
        registry = self.registry
        if registry is None:
            return ""
        from openclaw_lab.agent.skilled import section

        return section(registry, message, self._config, self.tools, self._mode)

    def skill_status(self) -> str:
        """The list that /skills prints."""
        registry = self.registry
        if registry is None:
            return "Available skills:\n  (none)"
        return str(registry.status())

    @property
    def skill_problems(self) -> tuple[str, ...]:
        """One line for each skill file that is not used, and each folder without skills."""
        registry = self.registry
        return () if registry is None else tuple(str(each) for each in registry.problems if each.fatal)

    def stop(self) -> None:
        """Stop the services of what was loaded here."""
        if self.loaded is not None:
            self.loaded.stop()


def _is_source(each: object) -> bool:
    return isinstance(each, str | Path | PluginEntry) or (callable(each) and not hasattr(each, "register"))


def _source(each: Any, config: LabConfig, plugin_config: PluginConfig, memory: object) -> Any:
    """The built-in KnowHub plugin takes the agent's own config and knowledge base, unless it has another config."""
    if each != PLUGIN_ID or plugin_config is not None:
        return each
    return knowhub_entry(memory if is_knowhub(memory) else None, config)  # type: ignore[arg-type]


def _bus(source: object) -> HookBus:
    """The bus of hooks given by hand: one as it is, or what an object registers on one."""
    if isinstance(source, HookBus):
        return source
    register = getattr(source, "register", None)
    if not callable(register):
        expected = (
            "a folder, the name of a built-in plugin, an entry, Plugins, a HookBus, or an object with register(bus)"
        )
        raise ConfigError("plugins", f"a {type(source).__name__}", expected)
    bus = HookBus()
    register(bus)
    return bus


def _registry(skills: object, folders: tuple[Path, ...]) -> SkillRegistry | None:
    own = None if hasattr(skills, "match") else listed("skills", skills)
    if own == [] and not folders:
        return None
    from openclaw_lab.skills.registry import SkillRegistry

    if own is None:
        check(skills=(skills, SkillRegistry, "folders, or a SkillRegistry"))
        return cast(SkillRegistry, skills)
    return SkillRegistry.load(*own, *folders)
