# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that are packed once for all runs; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: built_modules
type: notification
short_description: Keep packed modules from run to run
version_added: 1.0.0
description:
  - Keeps the modules of this collection as ansible-core packs them for a host, in C(agentlab/modules) below E(XDG_CACHE_HOME), and uses them in
    later runs until a file of the collection or of ansible-core changes. That saves half a second for each module and run.
  - Modules of other collections are packed in each run, as ever.
  - Loads the connection plugin P(agentlab.ocp.sandbox#connection) once. Otherwise each task would load it, and what it imports.
author:
  - The agentlab authors (@agentlab)
requirements:
  - enable it in C(ansible.cfg), C(callbacks_enabled = agentlab.ocp.built_modules)
"""

import base64
import contextlib
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ansible import constants as C
from ansible import module_utils
from ansible.executor import module_common
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import connection_loader
from ansible.release import __version__
from ansible_collections.agentlab.ocp.plugins.module_utils import built_modules
from ansible_collections.agentlab.ocp.plugins.module_utils.files import cache_directory

if TYPE_CHECKING:
    from ansible.executor.stats import AggregateStats
    from ansible.playbook import Playbook

_PLUGINS = Path(__file__).resolve().parents[1]


class CallbackModule(CallbackBase):
    """Fetches packed modules before the first task, and keeps new ones at the end: see DOCUMENTATION.

    Without a cache that can be read or written, modules are packed as ever.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "agentlab.ocp.built_modules"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._cache, self._key = cache_directory() / "modules", ""

    def v2_playbook_on_start(self, playbook: Playbook) -> None:
        # Each task is a fork of this process.
        connection_loader.get("agentlab.ocp.sandbox", class_only=True)
        with contextlib.suppress(OSError):
            trees = (_PLUGINS / "modules", _PLUGINS / "module_utils", Path(module_utils.__file__).parent)
            self._key = built_modules.key(__version__, trees)
            built_modules.fetch(self._cache, self._key, Path(C.DEFAULT_LOCAL_TMP))

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        if self._key and hasattr(module_common, "_CachedModule"):
            with contextlib.suppress(OSError):
                built_modules.keep(self._cache, self._key, Path(C.DEFAULT_LOCAL_TMP), _compile)


def _compile(packed: Path, kept: Path) -> None:
    """Write a packed module with bytecode: `zip_data` of ansible-core's own class is the archive in base64."""
    module = module_common._CachedModule.load(str(packed))
    archive = built_modules.with_bytecode(base64.b64decode(module.zip_data))
    part = kept.with_name(f".{kept.name}.{os.getpid()}")
    dataclasses.replace(module, zip_data=base64.b64encode(archive)).dump(str(part))
    part.rename(kept)
