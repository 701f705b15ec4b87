# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Times and results of the stages in state.json; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: run_state
type: notification
short_description: Record start, end and result of the stages of a run
version_added: 1.0.0
description:
  - Writes C(stages) of C(state.json) in the run directory for C(prepare), C(configure), C(image), C(boot), C(wait) and C(validate).
  - A stage that is running, or was killed, has no C(end) and no C(result).
  - Not in check mode.
author:
  - The agentlab authors (@agentlab)
requirements:
  - enable it in C(ansible.cfg), C(callbacks_enabled = agentlab.ocp.run_state)
"""

import contextlib
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RUN_STAGES

_PLAN = "agentlab.ocp.plan"
_PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


class CallbackModule(CallbackBase):  # type: ignore[misc]
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "agentlab.ocp.run_state"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._stage: str | None = None
        self._run_dir: Path | None = None
        self._running: tuple[Path, str] | None = None
        self._failed = False

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._finish()
        path = Path(play.get_path().rpartition(":")[0]).resolve()
        self._stage = path.stem if path.parent == _PLAYBOOKS and path.stem in RUN_STAGES else None

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        # The role plan runs first, and sets the run directory.
        planning = task._role is not None and task._role.get_name() == _PLAN
        if self._stage and self._run_dir and not self._running and not planning and not context.CLIARGS.get("check"):
            self._running, self._failed = (self._run_dir, self._stage), False
            with contextlib.suppress(OSError, state.StateError):
                state.begin(*self._running)

    def v2_runner_on_ok(self, result: Any) -> None:
        if result.task.action == _PLAN:
            self._run_dir = Path(result.result["run_dir"])

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._failed |= not ignore_errors

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._failed = True

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._finish()

    def _finish(self) -> None:
        if self._running:
            with contextlib.suppress(OSError, state.StateError):
                state.finish(*self._running, failed=self._failed)
            self._running = None
