"""`agentlab import devscripts` and `agentlab export devscripts`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import main
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import profile


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, target = tmp_path / "config_me.sh", tmp_path / "mine.yml"
    config.write_text(
        "export AGENT_E2E_TEST_SCENARIO=COMPACT_IPV6\nexport CI_TOKEN=hush\nexport SSH_KEY_FILE=~/k.pub\n"
    )
    assert main(["import", "devscripts", str(config), "-o", str(target)]) == 0
    found = profile.load(target)
    assert (found["topology"], found["stack"], found["addressing"]) == ("compact", "ipv6", "static")
    assert found["installer"]["ssh_key_file"] == "~/k.pub"
    out, report = capsys.readouterr()
    assert out == "" and report.splitlines() == [
        "2 mapped, 1 ignored, 0 refused",
        "mapped:",
        "  AGENT_E2E_TEST_SCENARIO -> topology: compact, stack: ipv6, addressing: static",
        "  SSH_KEY_FILE -> installer.ssh_key_file: ~/k.pub",
        "ignored:",
        "  CI_TOKEN: a secret that makes a pull secret, which installer.pull_secret_file names",
    ]


def test_lines_of_ci(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEVSCRIPTS_CONFIG", "AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nAGENT_E2E_TEST_BOOT_MODE=PXE\n")
    assert main(["import", "devscripts"]) == 0
    assert profile.parse(capsys.readouterr().out, "out").raw["boot"] == {"mode": "pxe"}
    monkeypatch.delenv("DEVSCRIPTS_CONFIG")
    with pytest.raises(SystemExit):
        main(["import", "devscripts"])


def test_standard_input_after_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config_root.sh").write_text("MASTER_MEMORY=20000\nBOND_CONFIG=balance-rr\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nBOND_CONFIG=none\n"))
    assert main(["import", "devscripts", str(tmp_path / "config_root.sh"), "-"]) == 0
    assert profile.parse(capsys.readouterr().out, "out").raw["master"] == {"memory_mib": 20000}


def test_nothing_is_written_when_something_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, target = tmp_path / "config.sh", tmp_path / "mine.yml"
    config.write_text("AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nBOND_CONFIG=balance-rr\n")
    arguments = ["import", "devscripts", str(config), "-o", str(target)]
    assert main(arguments) == 2 and not target.exists()
    assert f"  {config}:2: BOND_CONFIG is 'balance-rr': the lab's switch" in capsys.readouterr().err
    assert main([*arguments, "--partial"]) == 0
    assert "# Refused: " in target.read_text()


@pytest.mark.parametrize(
    ("text", "problem"),
    [("A=$(hostname -f)", ":1: a command substitution"), ("rm -rf /x", ":1: 'rm -rf /x' is not an assignment")],
)
def test_commands_are_not_run(text: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.sh").write_text(text)
    assert main(["import", "devscripts", str(tmp_path / "config.sh"), "--partial"]) == 2
    assert f"config.sh{problem}" in capsys.readouterr().err


def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "devscripts", str(tmp_path / "none.sh")]) == 2
    assert main(["import", "devscripts", str(tmp_path)]) == 2
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert main(["import", "devscripts", str(tmp_path / "binary")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"{tmp_path}/none.sh: cannot be read: No such file or directory",
        f"{tmp_path}: is not a file",
        f"{tmp_path}/binary: is not text in UTF-8",
    ]


def test_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "config_me.sh"
    assert main(["export", "devscripts", "HA_IPV4", "--cluster", "two", "-o", str(target)]) == 0
    assert "export AGENT_E2E_TEST_SCENARIO=HA_IPV4  # topology" in target.read_text()
    assert "export CLUSTER_NAME=two  # --cluster\n" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr().err.startswith("no counterpart: release.payload: ")
    assert main(["export", "devscripts", "nothing"]) == 2
    with pytest.raises(SystemExit):
        main(["export", "devscripts"])


def test_export_keeps_the_settings_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "config_me.sh"
    target.write_text("export CI_TOKEN=mine\n")
    arguments = ["export", "devscripts", "HA_IPV4", "-o", str(target)]
    assert main(arguments) == 2
    assert f"{target}: was not written by agentlab" in capsys.readouterr().err
    assert target.read_text() == "export CI_TOKEN=mine\n"
    assert main([*arguments, "--force"]) == 0
    assert main(arguments) == 0
