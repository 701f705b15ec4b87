"""The command line: where its options are allowed, and its messages for wrong ones."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import run
from ansible_collections.agentlab.ocp.plugins.module_utils.log import LOG_FILE, Log

TARGET = ["create", "agent-config-template"]


@pytest.mark.parametrize(
    "words",
    [
        ["--dir", "{}", "--log-level=error", *TARGET],
        [TARGET[0], "--dir={}", "--log-level", "error", TARGET[1]],
        [*TARGET, "--dir", "{}", "--log-level", "ERROR"],
        ["--dir", "/nowhere", *TARGET, "--dir", "{}", "--log-level", "panic"],
    ],
)
def test_options_stand_anywhere(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([word.format(tmp_path) for word in words]) == 0
    assert (tmp_path / "agent-config.yaml").exists()
    assert capsys.readouterr().err == ""


def test_a_level_that_is_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*TARGET, "--dir", str(tmp_path), "--log-level", "Loud"]) == 1
    assert capsys.readouterr().err == 'level=fatal msg=invalid log-level: not a valid logrus Level: "Loud"\n'
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert cli.main([*TARGET, "--dir", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("level=fatal msg=failed to create directory ")


def test_graph_takes_them_too(tmp_path: Path) -> None:
    assert cli.main(["--log-level", "debug", "graph", "--output-file", str(tmp_path / "x.dot")]) == 0
    assert (tmp_path / "x.dot").read_text().startswith("digraph G {")


def test_a_graph_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, problem in ((tmp_path / "none/x.dot", "No such file or directory"), (tmp_path, "Is a directory")):
        assert cli.main(["graph", "--output-file", str(path)]) == 1
        assert capsys.readouterr().err == f"level=fatal msg={path}: {problem}\n"
    assert not list(tmp_path.iterdir())


def test_a_log_that_cannot_be_written_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / LOG_FILE).mkdir()
    assert cli.main([*TARGET, "--dir", str(tmp_path)]) == 0
    assert (
        f"level=warning msg={tmp_path / LOG_FILE}: the log cannot be written: Is a directory\n"
        in capsys.readouterr().err
    )


def test_a_full_disk_is_one_line_that_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*__: object, **___: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "agent-config.yaml"))

    monkeypatch.setattr(run, "create", full)
    assert cli.main([*TARGET, "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"level=fatal msg={tmp_path}/agent-config.yaml: No space left on device\n"


RELEASE = "registry.test/release@sha256:" + "0" * 64


def test_an_unreadable_install_config_is_an_error_with_a_status_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", RELEASE)
    monkeypatch.setenv("AGENTLAB_RELEASE_VERSION", "4.22.0")
    (tmp_path / "install-config.yaml").write_text("apiVersion: v2\n")
    assert cli.main(["create", "cluster-manifests", "--dir", str(tmp_path)]) == 3
    override, error = capsys.readouterr().err.splitlines()
    assert (
        override
        == f"level=warning msg=Found override for release image ({RELEASE}). Please be warned, this is not advised"
    )
    assert error.startswith('level=error msg=failed to fetch Agent Manifests: failed to load asset "Install Config": ')


def test_each_line_of_a_message_has_its_level(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = Log(tmp_path)
    log("info", "To access the cluster\n\n    export KUBECONFIG=x")
    assert capsys.readouterr().err == (
        "level=info msg=To access the cluster\nlevel=info\nlevel=info msg=    export KUBECONFIG=x\n"
    )
    assert (
        (tmp_path / LOG_FILE)
        .read_text()
        .endswith(' level=info msg="To access the cluster\\n\\n    export KUBECONFIG=x"\n')
    )


def test_what_was_made_is_named_as_dir_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([*TARGET, "--dir", "here"]) == 0
    assert capsys.readouterr().err == "level=info msg=Agent-Config-Template created in: here\n"
