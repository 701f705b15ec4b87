# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Concise output of a run; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: stages
type: stdout
short_description: Stages, tasks with their time, and failures in full
version_added: 1.0.0
description:
  - Shows a heading for each stage, one line for each task that changed something, and failures in full.
  - While a task runs, shows new lines of the installer's log in the run directory (C(.openshift_install.log)).
author:
  - The agentlab authors (@agentlab)
options:
  failure_file:
    description:
      - Where the first failure is written, as JSON with the keys C(stage), C(task), C(host), C(message). An existing file is
        left alone.
      - The key C(unreachable) is true if the host was unreachable. One that was ignored is written, too, with C(ignored) true,
        unless something fails.
    type: path
    env:
      - name: AGENTLAB_FAILURE
"""

import json
import os
import re
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible import constants as C
from ansible.plugins.callback import CallbackBase
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import load_json
from ansible_collections.agentlab.ocp.plugins.module_utils.log import visible
from ansible_collections.agentlab.ocp.plugins.module_utils.redact import redact
from ansible_collections.agentlab.ocp.plugins.module_utils.state import write_atomic
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

if TYPE_CHECKING:
    from ansible.executor.stats import AggregateStats
    from ansible.executor.task_result import CallbackTaskResult
    from ansible.playbook.play import Play
    from ansible.playbook.task import Task

_LOG_LINE = re.compile(r'time="[^"]*" level=(info|warning|error|fatal) msg=(".*"|\S+)')
# The task that Ansible runs before each role; only its failure is shown.
_ARGUMENTS = "Validating arguments against arg spec"
_OUTPUTS = ("msg", "module_stderr", "stderr", "module_stdout", "stdout", "exception")


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes else f"{seconds:.1f}s"


# The logs of a run directory that are followed; this one has the messages of wait-for, too.
_LOGS = (RunFile.INSTALLER_LOG, f"add-nodes/{RunFile.INSTALLER_LOG}")


def _lines(data: dict[str, Any]) -> list[str]:
    """Return the output of a debug task: the lines of its message, or the variable."""
    if "msg" not in data:
        return [
            f"{key}: {value}"
            for key, value in data.items()
            if not key.startswith("_") and key not in ("changed", "failed")
        ]
    return [str(line) for line in data["msg"]] if isinstance(data["msg"], list) else str(data["msg"]).splitlines()


class _Follower(threading.Thread):
    """Passes new lines of a log file to `show`, twice a second."""

    def __init__(self, path: Path, show: Callable[[str, str], None]) -> None:
        super().__init__(daemon=True)
        self.path, self.show = path, show
        self.done = threading.Event()
        self.offset = path.stat().st_size if path.exists() else 0

    def run(self) -> None:
        while not self.done.wait(0.5):
            self.read()
        self.read()

    def read(self) -> None:
        try:
            with self.path.open(encoding="utf-8", errors="replace") as stream:
                if stream.seek(0, 2) < self.offset:
                    self.offset = 0
                stream.seek(self.offset)
                lines = stream.readlines()
                self.offset = stream.tell()
        except OSError:
            return
        for line in lines:
            match = _LOG_LINE.match(line)
            if match:
                text = match[2]
                self.show(match[1], load_json(text, name="log") if text.startswith('"') else text)


class CallbackModule(CallbackBase):
    """Prints a line for each stage and task: see DOCUMENTATION.

    The output of a failed task is shown without what looks like a secret. The first failure is also written to the file
    of the option `failure_file`, which the command line reads.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "agentlab.ocp.stages"

    def __init__(self) -> None:
        super().__init__()
        self._begin = self._task_begin = time.monotonic()
        self._stage = self._task = ""
        self._headed = ""
        self._run_dir: Path | None = None
        self._hosts = 1
        self._followers: list[_Follower] = []
        self._lock = threading.Lock()
        self._ignored = False

    # ------------------------------------------------------------------------------------------ what is shown

    def _print(self, text: str, color: str | None = None) -> None:
        try:
            self._display.display(text, color=color)
        except BrokenPipeError:
            # The reader has closed the pipe, as head does. Continue the run without output.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)

    def _show(self, text: str, colour: str | None = None, *, coloured: bool = False) -> None:
        """Print below the stage. Texts of hosts and services are among it, so it has no commands of a terminal unless `coloured`."""
        text = text if coloured else visible(text)
        with self._lock:
            if self._headed != self._stage:
                self._headed = self._stage
                self._print(f"\n{self._stage}", color=C.COLOR_HIGHLIGHT)
            self._print(text, color=colour)

    def _line(self, status: str, result: CallbackTaskResult, colour: str | None, more: str = "") -> None:
        host = f" [{result.host.get_name()}]" if self._hosts > 1 else ""
        took = _elapsed(time.monotonic() - self._task_begin)
        self._show(f"  {status:<8}{took:>7}  {self._task}{host}{more}", colour)

    def _progress(self, level: str, text: str) -> None:
        # A message may have several lines.
        self._show(textwrap.indent(text, " " * 19), {"info": None}.get(level, C.COLOR_WARN))

    def _follow(self) -> None:
        self._unfollow()
        if self._run_dir:
            self._followers = [_Follower(self._run_dir / name, self._progress) for name in _LOGS]
            for follower in self._followers:
                follower.start()

    def _unfollow(self) -> None:
        for follower in self._followers:
            follower.done.set()
            follower.join()
        self._followers = []

    # ------------------------------------------------------------------------------------------ plays and tasks

    def v2_playbook_on_play_start(self, play: Play) -> None:
        self._stage = play.get_name().strip()
        variables = play.get_variable_manager()
        known = variables.get_vars(play=play)
        self._run_dir = Path(known["agentlab_run_dir"]) if "agentlab_run_dir" in known else None

    def v2_playbook_on_task_start(self, task: Task, is_conditional: bool) -> None:
        self._task, self._task_begin = task.get_name().rsplit(" : ", 1)[-1], time.monotonic()
        self._follow()

    def v2_playbook_on_handler_task_start(self, task: Task) -> None:
        self.v2_playbook_on_task_start(task, False)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        self._show("  no host to run on", C.COLOR_SKIP)

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        self._unfollow()
        data = result.result
        quiet = self._task.startswith(_ARGUMENTS) or result.task.action in (
            "ansible.builtin.set_fact",
            "ansible.builtin.assert",
        )
        if quiet and not self._display.verbosity:
            return
        changed = bool(data.get("changed"))
        shown = self._result(result) if self._display.verbosity else ""
        self._line("changed" if changed else "ok", result, C.COLOR_CHANGED if changed else C.COLOR_OK, shown)
        if result.task.action in ("ansible.builtin.debug", "debug") and not shown:
            self._show("\n".join(f"    {line}" for line in _lines(data)))

    def v2_runner_on_skipped(self, result: CallbackTaskResult) -> None:
        self._unfollow()
        if self._display.verbosity:
            self._line("skipped", result, C.COLOR_SKIP)

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        if result.task_fields.get("ignore_unreachable"):
            self._unfollow()
            self._line("ignored", result, C.COLOR_WARN, f": {redact(str(result.result.get('msg', '')))}")
            self._note(str(result.result.get("msg")), result, ignored=True, unreachable=True)
        else:
            self._fail("lost", result, unreachable=True)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if ignore_errors:
            self._unfollow()
            self._line("ignored", result, C.COLOR_WARN, f": {redact(str(result.result.get('msg', '')))}")
        else:
            self._fail("FAILED", result)

    def v2_runner_item_on_failed(self, result: CallbackTaskResult) -> None:
        text = f"{self._get_item_label(result.result)}: {result.result.get('msg', '')}"
        self._show(f"  item {redact(text)}", C.COLOR_ERROR)

    def v2_runner_retry(self, result: CallbackTaskResult) -> None:
        data = result.result
        self._show(f"  {'':<17}{self._task}: attempt {data.get('attempts')} of {data.get('retries')}", C.COLOR_DEBUG)

    def v2_on_file_diff(self, result: CallbackTaskResult) -> None:
        data = result.result
        for item in data.get("results", [data]):
            if item.get("diff") and item.get("changed"):
                diff = self._get_diff(item["diff"])
                if diff:
                    self._show(diff, coloured=True)

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        self._unfollow()
        total = {kind: sum(getattr(stats, kind).values()) for kind in ("ok", "changed", "failures", "dark")}
        took = _elapsed(time.monotonic() - self._begin)
        if total["failures"] or total["dark"]:
            self._print(f"\nfailed after {took}", color=C.COLOR_ERROR)
        else:
            changed = f"{total['changed']} changed" if total["changed"] else "nothing changed"
            self._print(f"\ndone in {took}, {changed}", color=C.COLOR_OK)

    # ------------------------------------------------------------------------------------------ failures

    def _result(self, result: CallbackTaskResult) -> str:
        return " => " + redact(self._dump_results(result.result))

    def _fail(self, status: str, result: CallbackTaskResult, *, unreachable: bool = False) -> None:
        self._unfollow()
        data = result.result
        self._line(status, result, C.COLOR_ERROR)
        message = str(data.get("msg") or data.get("stderr") or "no message")
        seen: set[str] = set()
        for key in _OUTPUTS:
            text = str(data.get(key) or "").strip()
            # Ansible's own summary repeats the other fields.
            if text and text not in seen and (key != "exception" or "msg" not in data or self._display.verbosity):
                seen.add(text)
                self._show("\n".join(f"    {line}" for line in redact(text).splitlines()), C.COLOR_ERROR)
        path = result.task.get_path()
        if path:
            self._show(f"    task at {path}", C.COLOR_DEBUG)
        self._note(message, result, **({"unreachable": True} if unreachable else {}))

    def _note(self, message: str, result: CallbackTaskResult, **more: bool) -> None:
        file = self.get_option("failure_file")
        path = Path(file) if file else None
        ignored = more.get("ignored", False)
        # A failure replaces what was ignored before it.
        if path is None or (path.exists() and (ignored or not self._ignored)):
            return
        self._ignored = ignored
        note = {
            "stage": self._stage,
            "task": self._task,
            "host": result.host.get_name(),
            "message": redact(message),
            **more,
        }
        write_atomic(path, json.dumps(note) + "\n")
