"""What a plugin is written with: `define_plugin_entry`, the api that it registers with, tools and services.

A tool is a name, a description, a JSON Schema of its parameters and a function. `tool_of` makes one of a plain
annotated function; both kinds may be `async`.
"""

from __future__ import annotations

from openclaw_lab.plugins.api import PluginApi as PluginApi
from openclaw_lab.plugins.entry import PluginEntry as PluginEntry
from openclaw_lab.plugins.entry import Service as Service
from openclaw_lab.plugins.entry import define_plugin_entry as define_plugin_entry
from openclaw_lab.plugins.functions import tool_of as tool_of
from openclaw_lab.plugins.hooks import HookEvent as HookEvent
from openclaw_lab.plugins.hooks import Injection as Injection
from openclaw_lab.plugins.tool import Answer as Answer
from openclaw_lab.plugins.tool import Run as Run
from openclaw_lab.plugins.tool import Tool as Tool
from openclaw_lab.plugins.tool import ToolContext as ToolContext
from openclaw_lab.plugins.tool import ToolResult as ToolResult
