# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Times, results and events of the stages; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: run_state
type: notification
short_description: Record the stages of a run
version_added: 1.0.0
description:
  - Writes start, end and result of C(prepare), C(configure), C(image), C(boot), C(wait), C(validate) and C(add-nodes) into C(stages) of C(state.json) in
    the run directory. A stage that is running, or was killed, has no C(end) and no C(result).
  - Appends these stages, their tasks, booted machines, checks and causes of a failure to C(logs/events.jsonl), as JSON lines.
  - Writes the run page, C(report/index.html), at the end of the playbook, unless O(write_page) is false.
  - Not in check mode.
author:
  - The agentlab authors (@agentlab)
requirements:
  - enable it in C(ansible.cfg), C(callbacks_enabled = agentlab.ocp.run_state)
options:
  write_page:
    description: Whether to write the run page. C(agentlab) writes it itself, with code that it loads while Ansible runs.
    type: bool
    default: true
    env:
      - name: AGENTLAB_WRITE_PAGE
"""

import contextlib
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ansible import context
from ansible.plugins.callback import CallbackBase
from ansible_collections.agentlab.ocp.plugins.module_utils import state, version
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.phases import ADD_NODES
from ansible_collections.agentlab.ocp.plugins.module_utils.report.secrets import of_run
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, Event, EventLog, event
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RUN_STAGES

if TYPE_CHECKING:
    from ansible.executor.stats import AggregateStats
    from ansible.executor.task_result import CallbackTaskResult
    from ansible.playbook.play import Play
    from ansible.playbook.task import Task

_PLAN = "agentlab.ocp.plan"
_RECORDED = (*RUN_STAGES, ADD_NODES)
_GATHER = "gather"
_PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


class CallbackModule(CallbackBase):
    """Writes the events of a run: see DOCUMENTATION.

    Everything goes to the run directory that the role agentlab.ocp.plan reports; before that, and in check mode,
    nothing is written. A file that cannot be written is not an error of the run.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "agentlab.ocp.run_state"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._stage: str | None = None
        self._run_dir: Path | None = None
        self._running: tuple[Path, str] | None = None
        self._began = self._task_began = 0.0
        self._failure = ""
        self._profile = ""
        self._introduced = False
        self._log: EventLog | None = None

    def v2_playbook_on_play_start(self, play: Play) -> None:
        self._finish()
        path = Path(play.get_path().rpartition(":")[0]).resolve()
        stage = path.stem.replace("_", "-")
        # Roles of stages that --tags leaves out still have their arguments checked, which is a task.
        selected = {"all", path.stem} & {*context.CLIARGS.get("tags", ["all"])}
        ours = path.parent == _PLAYBOOKS and stage in (*_RECORDED, _GATHER)
        self._stage = stage if ours and selected else None
        given = play.get_variable_manager().get_vars(play=play).get("agentlab_profile")
        self._profile = Path(given).stem if isinstance(given, str) else ""

    def v2_playbook_on_task_start(self, task: Task, is_conditional: bool) -> None:
        self._task_began = time.time()
        # The role plan runs first, and sets the run directory.
        planning = task._role is not None and task._role.get_name() == _PLAN
        if self._stage and self._run_dir and not self._running and not planning and not context.CLIARGS.get("check"):
            self._running, self._failure, self._began = (self._run_dir, self._stage), "", time.time()
            self._log = None
            self._begin(self._stage)
            if self._stage in _RECORDED:
                with contextlib.suppress(OSError, state.StateError):
                    state.begin(*self._running)

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        if result.task.action == _PLAN:
            self._run_dir = Path(result.result["run_dir"])
        if not self._running:
            return
        if not (self._running[0] / FILE).exists():
            # The first stage of a new cluster has removed the logs of the previous one with this name.
            self._introduced = False
            self._begin(self._running[1])
        self._write([self._task(result, "ok"), *_found(result)])

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._fail(result)

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self._fail(result)

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        self._finish()
        if not self._introduced or not self._run_dir or not self.get_option("write_page"):
            return
        from ansible_collections.agentlab.ocp.plugins.module_utils.report import page

        try:
            page.write(self._run_dir)
        except (OSError, ValueError) as error:
            self._display.warning(f"the run page cannot be written: {error}")

    def _fail(self, result: CallbackTaskResult) -> None:
        message = str(result.result.get("msg") or "no message")
        self._failure = self._failure or f"{result.task.get_name().rsplit(' : ', 1)[-1]}: {message}"
        self._log = None  # the run may have other secrets than when the stage began
        self._write([self._task(result, "failed", message)])

    def _task(self, result: CallbackTaskResult, outcome: str, message: str = "") -> Event:
        return event(
            "task",
            result.task.get_name().rsplit(" : ", 1)[-1],
            outcome,
            message,
            level="error" if message else "info",
            stage=self._stage or "",
            seconds=round(time.time() - self._task_began),
        )

    def _begin(self, stage: str) -> None:
        if not self._introduced:
            self._introduced = True
            build = version.commit()
            program = f"agentlab {version.VERSION}{f' ({build})' if build else ''}"
            self._write([event("run", self._profile, text=program, at=self._began)])
        self._write([event("stage", stage, "started", at=self._began)])

    def _finish(self) -> None:
        if not self._running:
            return
        run_dir, stage = self._running
        failed = bool(self._failure)
        outcome = event(
            "stage", stage, "failed" if failed else "ok", self._failure, level="error" if failed else "info"
        )
        self._write([outcome])
        if stage in _RECORDED:
            with contextlib.suppress(OSError, state.StateError):
                state.finish(run_dir, stage, failed=failed)
        self._running = None

    def _write(self, events: list[Event]) -> None:
        """A file that cannot be written does not end the run."""
        if not self._running:
            return
        self._log = self._log or EventLog(self._running[0] / FILE, of_run(self._running[0]))
        with contextlib.suppress(OSError):
            self._log.write(events)


def _found(result: CallbackTaskResult) -> Iterator[Event]:
    """Yield what a module has done or found."""
    action, data = result.task.action, result.result
    if action == "agentlab.ocp.lab_boot":
        yield from (
            event("machine", str(name), "booted", "booted from its image") for name in data.get("changes") or ()
        )
    elif action in ("agentlab.ocp.cluster_info", "agentlab.ocp.cluster_tests"):
        for check in data.get("checks") or ():
            good = bool(check["ok"])
            yield event(
                "check",
                check["name"],
                "ok" if good else "failed",
                check["found"],
                level="info" if good else "error",
                seconds=math.ceil(check.get("seconds", 0)),
            )
    elif action == "agentlab.ocp.gather":
        yield from (
            event("cause", "", text=cause["text"], level="error", next=cause["step"])
            for cause in data.get("causes") or ()
        )
