from __future__ import annotations

import argparse
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import cli, state, version
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import create, failure, lab, stages
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RUN_STAGES

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"

# Not the default: a developer may have a cluster of that name.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as in most shells
CLUSTER = "unit"
NAMED = ("--cluster", CLUSTER)


def agentlab(*argv: str, runs: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **({"AGENTLAB_RUNS": str(runs)} if runs else {}), **environment}
    return subprocess.run([sys.executable, "-m", PACKAGE, *argv], capture_output=True, text=True, env=env, check=False)


def test_every_verb_has_its_module() -> None:
    code = (
        f"import importlib, {PACKAGE} as cli\n"
        "for name, verb in cli.VERBS.items():\n"
        "    assert callable(getattr(importlib.import_module('.' + verb.module, cli.__name__), verb.function)), name\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_start_up_is_fast() -> None:
    """In processor time, which does not depend on what else the host does."""
    agentlab("help")
    before = os.times()
    assert agentlab("help").returncode == 0
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.15


def test_a_misspelled_verb_names_the_nearest() -> None:
    done = agentlab("deplyo")
    assert done.returncode == 2
    assert done.stderr == "agentlab: there is no verb 'deplyo'; did you mean deploy?\n"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("up", "`agentlab deploy` installs a cluster, or resumes where it stopped"),
        ("ls", "`agentlab list` prints the clusters of this checkout and of this host"),
        ("destory", "did you mean destroy?"),
        ("xyzzy", "`agentlab help` lists them"),
    ],
)
def test_a_verb_that_other_tools_have(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`status` was answered with: did you mean nmstate?"""
    assert cli.main([name]) == 2
    assert capsys.readouterr().err == f"agentlab: there is no verb {name!r}; {hint}\n"


@pytest.mark.parametrize("argv", [["--version"], ["version"]])
def test_version(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 0
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    assert re.match(
        rf"agentlab {re.escape(galaxy['version'])}( \([0-9a-f]+(-dirty)?\))?\nlab payload ", capsys.readouterr().out
    )


def test_an_installed_collection_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "ROOT", tmp_path)
    assert version.commit() == ""


@pytest.mark.parametrize("argv", [["help", "plan"], ["plan", "--help"]])
def test_help_of_a_verb(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(argv)
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: agentlab plan ")


@pytest.mark.parametrize(
    "argv",
    [
        ["agent", "create", "image", "--dir", "d", "--log-level", "debug"],
        ["agent", "--dir", "d", "create", "image", "--log-level=debug"],
        ["--dir=d", "agent", "--log-level", "debug", "create", "image"],
        ["--dir", "d", "create", "--log-level", "debug", "image"],
    ],
)
def test_the_words_of_openshift_install_are_taken(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`agentlab agent create image` was refused, so that users could not call agentlab in place of openshift-install."""
    seen: list[argparse.Namespace] = []
    monkeypatch.setattr(create, "main", lambda rest: seen.append(create._parser().parse_args(rest)) or 0)
    assert cli.main(argv) == 0
    assert (str(seen[0].dir), seen[0].log_level, seen[0].target) == ("d", "debug", "image")


@pytest.mark.parametrize("argv", [["agent", "deploy"], ["agent", "agent", "create"]])
def test_words_that_openshift_install_lacks(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 2
    assert capsys.readouterr().err.endswith(
        "; those of openshift-install are agent create, agent graph, agent wait-for\n"
    )


@pytest.mark.parametrize("level", ["trace", "Trace", "warn", "panic", "ERROR", "bogus", ""])
def test_both_verbs_take_the_same_levels(level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """create took `trace`, which wait-for refused."""
    codes = {}
    for verb in (["create", "cluster-manifests"], ["wait-for", "install-complete"]):
        codes[verb[0]] = cli.main([*verb, "--dir", str(tmp_path), "--log-level", level])
        refused = f'invalid log-level: not a valid logrus Level: "{level}"' in capsys.readouterr().err
        assert refused == (level in ("bogus", ""))
    assert all(codes.values())


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            assert {choice.dest for choice in action._choices_actions} == set(action.choices)
            assert all(choice.help for choice in action._choices_actions)
            for sub in action.choices.values():
                yield from parsers(sub)


@pytest.mark.parametrize("name", ["iso", "pxe", "dev", "pack", "serve"])
def test_every_command_and_option_is_explained(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agentlab iso --help` listed no command, and 15 options of customize had no word."""
    made: list[argparse.ArgumentParser] = []
    parse = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(
        argparse.ArgumentParser, "parse_args", lambda self, argv=None: made.append(self) or parse(self, argv)
    )
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr()
    assert not shown.err
    found = list(parsers(made[0]))
    assert len(found) > 1
    for parser in found[1:]:
        if parser.prog == f"{found[0].prog} {parser.prog.split()[-1]}":
            assert parser.prog.split()[-1] in shown.out
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (parser.prog, action.dest)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("snO_ipv4", "did you mean sno_ipv4 or the scenario SNO_IPV4?"),
        ("ha_ipv4v6_dhcp", "did you mean the scenario HA_IPV4V6_DHCP?"),
    ],
)
def test_a_profile_in_the_wrong_case(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", name]) == 2
    assert capsys.readouterr().err == f"{name}: there is no such profile; {hint}\n"


def test_a_pipe_that_is_no_longer_read(tmp_path: Path) -> None:
    """`| head` gave warnings of Ansible for each line that came after it."""
    command = [sys.executable, "-m", PACKAGE, "configure", "compact_ipv4", "--cluster", "piped"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**BUFFERED, "AGENTLAB_RUNS": str(tmp_path)},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == ""
    assert process.returncode == 0
    assert (tmp_path / "piped/agent-config.yaml").exists()


def test_plan_writes_only_when_asked(tmp_path: Path) -> None:
    done = agentlab("plan", "sno_ipv6", "--cluster", "other", "--format", "yaml", runs=tmp_path)
    assert yaml.safe_load(done.stdout)["cluster"]["name"] == "other"
    assert list(tmp_path.iterdir()) == []
    assert agentlab("plan", "sno_ipv6", "--cluster", "other", "--write", runs=tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "other").iterdir()} == {
        "profile.yaml",
        "plan.yaml",
        "plan.schema.json",
        "inventory.yml",
        "secrets.json",
    }
    assert "sno, ipv6" in agentlab("plan", runs=tmp_path, CLUSTER="other").stdout


def test_a_profile_can_be_shown_whole(tmp_path: Path) -> None:
    done = agentlab("plan", "compact_ipv6", "--format", "profile", runs=tmp_path)
    whole = tmp_path / "whole.yml"
    whole.write_text(done.stdout)
    assert yaml.safe_load(done.stdout)["network"]["offsets"]["api"] == 5
    plans = {agentlab("plan", name, "--format", "yaml", runs=tmp_path).stdout for name in ("compact_ipv6", str(whole))}
    assert len(plans) == 1
    assert json.loads(agentlab("plan", "--format", "schema").stdout)["properties"]["stack"]["enum"] == [
        "ipv4",
        "ipv6",
        "dualstack",
        "v6v4",
    ]


def test_a_wrong_profile_is_reported_before_anything_runs(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text("topology: sno\nstak: ipv4\n")
    for verb in ("plan", "deploy", "configure"):
        done = agentlab(verb, str(bad), runs=tmp_path / "runs")
        assert done.returncode == 2
        assert done.stderr == f"{bad}:2:1: stak: unknown field; did you mean `stack`?\n"
    bad.write_text("topology: ha\nstak: ipv4\nmaster: {memory_mib: 4000000}\n")
    lines = agentlab("prepare", str(bad), *NAMED, runs=tmp_path / "runs").stderr.splitlines()
    assert [line.removeprefix(str(bad)).split(" ", 2)[1] for line in lines] == ["stak:", "nodes.*.memory_mib:"]
    assert not (tmp_path / "runs").exists()


def test_a_later_verb_without_a_plan_reports_how_to_make_one(tmp_path: Path) -> None:
    done = agentlab("configure", runs=tmp_path)
    assert done.returncode == 2
    assert "there is no plan yet; make one: agentlab plan PROFILE --write" in done.stderr


@pytest.mark.slow
def test_configure_runs_twice(tmp_path: Path) -> None:
    checked = agentlab("configure", "compact_ipv4_static", *NAMED, "--check", "--diff", runs=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "+rendezvousIP: 192.168.111.80" in checked.stdout
    assert not tmp_path.joinpath(CLUSTER, "plan.yaml").exists()
    first = agentlab("configure", "compact_ipv4_static", *NAMED, runs=tmp_path)
    assert "2 changed" in first.stdout, first.stdout + first.stderr
    assert yaml.safe_load((tmp_path / f"{CLUSTER}/agent-config.yaml").read_text())["rendezvousIP"] == "192.168.111.80"
    assert "nothing changed" in agentlab("configure", *NAMED, runs=tmp_path).stdout


def test_a_failure_names_its_first_cause(tmp_path: Path) -> None:
    (tmp_path / CLUSTER).mkdir()
    (tmp_path / f"{CLUSTER}/ssh").touch()
    done = agentlab("configure", "sno_ipv4", *NAMED, runs=tmp_path)
    assert done.returncode == 2
    cause = f"[Errno 17] File exists: '{tmp_path}/{CLUSTER}/ssh'"
    assert f"first failure: Write install-config and agent-config [localhost]: {cause}" in done.stderr
    assert f"    {cause}\n    task at " in done.stdout


def test_what_to_do_when_the_lab_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    def reported(hypervisor: str, message: str) -> str:
        (tmp_path / "p.yml").write_text(f"hypervisor: {{kind: {hypervisor}}}\n")
        __, changes = rundir.prepare(tmp_path, str(tmp_path / "p.yml"), ROOT / "config_examples", "ut")
        rundir.write(changes)
        (tmp_path / "logs").mkdir(exist_ok=True)
        (tmp_path / failure.FILE).write_text(json.dumps({"task": "Make the image", "host": "h", "message": message}))
        failure.explain(tmp_path)
        return capsys.readouterr().err.partition("     Next: ")[2].strip()

    nameless = "virthost.ut.test.metalkube.org:5000/lab/release: its name does not resolve"
    assert reported("local", nameless) == (
        "resolvectl dns utbm 192.168.111.1; resolvectl domain utbm ~ut.test.metalkube.org  "
        "# lets this host resolve ut.test.metalkube.org through the lab's DNS"
    )
    assert reported("sandbox", nameless) == ""
    assert reported("sandbox", "192.168.111.1:5000: Connection refused") == (
        "bin/agentlab prepare --cluster ut  # starts the lab's stopped services"
    )
    assert reported("sandbox", "quay.io: Connection refused") == ""


@pytest.mark.parametrize("kind", ["sandbox", "local", "ssh"])
def test_only_a_hypervisor_on_another_host_is_reached_by_ssh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    host = ", host: lab.example.com" if kind == "ssh" else ""
    (tmp_path / "p.yml").write_text(f"hypervisor: {{kind: {kind}{host}}}\n")
    rundir.write(rundir.prepare(tmp_path, str(tmp_path / "p.yml"), ROOT / "config_examples", "ut")[1])
    (tmp_path / "logs").mkdir()
    message = "Task failed: cluster ut has no running sandbox (/s/sandbox.json): agentlab prepare --cluster ut"
    known = {"task": "Collect logs", "host": "hypervisor", "message": message, "unreachable": True}
    (tmp_path / failure.FILE).write_text(json.dumps(known))
    failure.explain(tmp_path)
    first, __, step = capsys.readouterr().err.strip().partition("\n     Next: ")
    assert first == f"first failure: Collect logs [hypervisor]: {message}"
    assert step.startswith("start lab.example.com and its sshd, or correct hypervisor.host") is (kind == "ssh")
    assert bool(step) is (kind == "ssh")


@pytest.mark.parametrize("verb", ["boot", "wait", "validate", "gather", "destroy", "add-nodes"])
def test_a_verb_for_a_cluster_that_is_not_there(tmp_path: Path, verb: str) -> None:
    done = agentlab(verb, *NAMED, runs=tmp_path)
    reported = f"agentlab: there is no cluster '{CLUSTER}' in {tmp_path}; `agentlab list` prints those that exist\n"
    assert (done.returncode, done.stderr, done.stdout) == (1, reported, "")


def test_the_starter_makes_an_environment_once(tmp_path: Path) -> None:
    """In a copy whose requirements are empty, so that nothing is fetched; started twice at once, by way of a link."""
    root, venv = tmp_path / "other name", tmp_path / "venv"
    (root / "bin").mkdir(parents=True)
    (root / "requirements.lock").write_text("")
    shutil.copy(ROOT / "agentlab.sh", root)
    shutil.copy(ROOT / "bin/agentlab", root / "bin", follow_symlinks=False)
    shutil.copytree(ROOT / "plugins/module_utils", root / "plugins/module_utils")
    (tmp_path / "agentlab").symlink_to(root / "bin/agentlab")
    env = {**os.environ, "AGENTLAB_VENV": str(venv), "AGENTLAB_PYTHON": sys.executable}
    both = [
        subprocess.Popen([tmp_path / "agentlab", "help"], env=env, stdout=-1, stderr=-1, text=True)
        for _copy in range(2)
    ]
    made = 0
    for process in both:
        out, err = process.communicate(timeout=900)
        assert "usage: agentlab VERB" in out, err
        made += err.count("creating the environment")
    assert made == 1
    env["AGENTLAB_PYTHON"] = "false"
    (root / "requirements.lock").write_text("# changed\n")
    again = subprocess.run([tmp_path / "agentlab", "help"], env=env, capture_output=True, text=True, check=True)
    assert "creating the environment" in again.stderr
    shutil.rmtree(venv)
    refused = subprocess.run([tmp_path / "agentlab", "help"], env=env, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.endswith("Python 3.11 or newer is required; install it, or set AGENTLAB_PYTHON\n")


SLOW_TO_END = """
import os, signal, sys, time
def end(*args):
    time.sleep(1.5)
    print("cleaned up", flush=True)
    os._exit(99)
signal.signal(signal.SIGINT, end)
print("started", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("whom", "number"), [("group", signal.SIGINT), ("verb", signal.SIGTERM)])
def test_who_interrupts_a_verb_lets_ansible_end_its_tasks(tmp_path: Path, whom: str, number: int) -> None:
    (tmp_path / "ansible").write_text(SLOW_TO_END)
    command = [str(tmp_path / "ansible")]
    code = f"import sys; from pathlib import Path; from {PACKAGE} import lab\nsys.exit(lab._ansible({command}, Path(), Path(), 1))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        os.killpg(process.pid, number) if whom == "group" else process.send_signal(number)
        assert process.communicate(timeout=30)[0] == "cleaned up\n"
    assert process.returncode == 130


def test_stages_are_those_of_the_playbook_and_of_make() -> None:
    plays = yaml.safe_load((ROOT / "playbooks/deploy.yml").read_text())
    assert [(play["tags"], play["ansible.builtin.import_playbook"]) for play in plays] == [
        ([name], f"{name}.yml") for name in ("plan", *RUN_STAGES)
    ]
    assert stages.tags(stages.stages_until("configure")) == ["--skip-tags", "image,boot,wait,validate"]
    assert stages.tags(stages.stages_until(None)) == []
    reported = subprocess.run(
        ["make", "-n", "run", "STOP_AFTER=boot"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "bin/agentlab deploy  --stop-after boot" in reported
    help_ = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert " ".join(RUN_STAGES) in help_


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["deploy"], True),
        (["validate"], True),
        (["deploy", "--stop-after", "validate"], True),
        (["deploy", "--stop-after", "boot"], False),
        (["deploy", "--check"], False),
        (["configure"], False),
    ],
)
def test_what_there_is_after_a_success(
    argv: list[str], shown: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last words were a kubeconfig and an address of the console that do not work where they are printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    rundir.write(rundir.prepare(tmp_path / "one", "ha_dualstack", ROOT / "config_examples", "one")[1])
    monkeypatch.setattr(lab, "_ansible", lambda *rest: 0)
    assert cli.main([*argv, "--cluster", "one"]) == 0
    out = capsys.readouterr().out
    assert ("The cluster one is installed." in out) == shown
    if shown:
        command = next(line for line in out.splitlines() if line.startswith("  API")).split(maxsplit=1)[1]
        assert command == f"{ROOT}/bin/agentlab kubectl --cluster one get nodes,clusterversion,clusteroperators"


def test_help_of_a_ci_job_installs_nothing(tmp_path: Path) -> None:
    """`ci/run-job --help` ran setup first."""
    for name, text in (
        ("bin/agentlab", f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n'),
        (".venv/bin/python", f"#!/bin/sh\necho python >> {tmp_path}/log\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci/run-job", tmp_path / "ci/run-job")
    for words, called in (
        (["--help"], ["ci"]),
        (["job", "-h"], ["ci"]),
        (["job", "--keep"], ["setup", "ci", "python"]),
    ):
        (tmp_path / "log").unlink(missing_ok=True)
        subprocess.run([tmp_path / "ci/run-job", *words], check=True)
        assert [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()] == called


@pytest.mark.parametrize(
    "argv",
    [
        ["help"],
        ["version"],
        ["list"],
        ["plan", "sno_ipv4"],
        ["status", "--cluster", CLUSTER],
        ["swarm", "--kubernetes", "2", "--clusters", "2", "--image", "x", "--url", "http://x"],
    ],
)
def test_the_output_has_no_reader(argv: list[str], tmp_path: Path) -> None:
    """As after `| head -1`, or when a terminal goes away: no message, and the status of SIGPIPE."""
    rundir.write(rundir.prepare(tmp_path / CLUSTER, "sno_ipv4", ROOT / "config_examples", CLUSTER)[1])
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", PACKAGE, *argv],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env={**BUFFERED, "AGENTLAB_RUNS": str(tmp_path)},
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_terminal_is_gone(tmp_path: Path) -> None:
    """A write to it fails with EIO; a program that ignores SIGHUP, as below nohup, ends as without a reader."""
    ours, theirs = pty.openpty()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", PACKAGE, "help"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        env={**BUFFERED, "AGENTLAB_RUNS": str(tmp_path)},
        check=False,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("given", [["sno_ipv4"], ["--check"], ["--adopt"], ["--override", "node_agent=/x"]])
def test_a_deploy_from_a_snapshot_takes_no_other_plan(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert lab.run("deploy", [*given, "--from", "ready", *NAMED]) == 2
    assert "deploy --from takes no profile" in capsys.readouterr().err


def test_a_deploy_from_a_snapshot_continues_with_the_stages_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing runs when the snapshot cannot be restored."""
    assert stages.unfinished_stage(tmp_path) == RUN_STAGES[0]
    for name in RUN_STAGES[:4]:
        state.finish(tmp_path, name, failed=False)
    state.begin(tmp_path, "wait")
    assert stages.unfinished_stage(tmp_path) == "wait"
    assert stages.tags(stages.stages_until(None, "wait")) == ["--skip-tags", "prepare,configure,image,boot"]
    assert stages.tags(stages.stages_until("wait", "wait")) == ["--skip-tags", "prepare,configure,image,boot,validate"]
    assert stages.tags(stages.stages_until("boot", "wait")) == [
        "--skip-tags",
        "prepare,configure,image,boot,wait,validate",
    ]
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    monkeypatch.setattr(lab, "_ansible", lambda *__: pytest.fail("Ansible ran"))
    assert lab.run("deploy", ["--from", "ready", *NAMED]) == 1


def test_all_stages_done_means_the_last_again(tmp_path: Path) -> None:
    for name in RUN_STAGES:
        state.finish(tmp_path, name, failed=False)
    assert stages.unfinished_stage(tmp_path) == "validate"


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", "a\nb", "a\0b", "a\x1b[2J"])
@pytest.mark.parametrize("verb", ["status", "destroy", "gather", "exec", "logs", "plan", "snapshot list", "forward"])
def test_a_cluster_name_is_one_folder(
    verb: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan that lies elsewhere is not used by any verb."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    with pytest.raises(SystemExit) as ended:
        cli.main([*verb.split(), "--cluster", name])
    assert ended.value.code == 2
    assert f"{name!r} is not a cluster's name" in capsys.readouterr().err


def test_modules_do_not_inherit_what_makes_reading_them_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible itself is unbuffered, or a pipe would show the progress late."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    script, out = tmp_path / "ansible", tmp_path / "out"
    script.write_text("import os, sys\nprint(sys.stdout.write_through, bool(os.environ.get('PYTHONUNBUFFERED')))\n")
    with out.open("w+") as shown:
        assert lab._ansible([str(script)], tmp_path, tmp_path, shown.fileno(), shown) == 0
    assert out.read_text() == "True False\n"
