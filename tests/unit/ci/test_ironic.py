"""What is reported of Ironic's log."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.agentlab.ocp.ci import ironic

LOG = """\
2026-11-25 21:46:38.635 77 WARNING sushy.main [None req-6f10b18d - - - - - -] Could not discover the Session service path
2026-11-25 21:46:38.640 77 INFO sushy.main [None req-6f10b18d - - - - - -] A line of no interest
2026-11-25 21:46:39.635 77 WARNING sushy.main [None req-daab8a54 - - - - - -] Could not discover the Session service path
2026-11-25 21:46:40.000 77 ERROR ironic.conductor.utils [-] Power off failed
2026-11-25 21:46:40.000 77 ERROR ironic.conductor.utils Traceback (most recent call last):
"""


def test_each_warning_and_error_is_reported_once(tmp_path: Path) -> None:
    log = tmp_path / "ironic.log"
    log.write_text(LOG)
    assert ironic.findings(log) == [
        "WARNING sushy.main: Could not discover the Session service path",
        "ERROR ironic.conductor.utils: Power off failed",
    ]
