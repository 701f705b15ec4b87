"""Checkouts of upstream projects, as git repositories with two commits: what has changed, and what ours do not agree with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import drift as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.drift import agent, assisted, canary, devscripts, installer
from ansible_collections.agentlab.ocp.plugins.module_utils.drift.checkout import CheckoutError, Tree
from ansible_collections.agentlab.ocp.plugins.module_utils.drift.facts import Change, Disagreement, changes
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit

ACTIONS = """
\tvar stepActionMap = map[models.StepType]*Action{
\t\tmodels.StepTypeInventory:         {&inventory{args: args}},
\t\tmodels.StepTypeConnectivityCheck: {&connectivityCheck{args: args}},
"""
FLAGS = '\tflag.StringVar(&ret.TargetURL, "url", "", "The target")\n\th := flag.Bool("help", false, "Help message")\n'
MACHINE = """
func NewHostStateMachine() {
\tsm.AddTransitionRule(stateswitch.TransitionRule{
\t\tTransitionType: TransitionTypeRefresh,
\t\tSourceStates: []stateswitch.State{
\t\t\tstateswitch.State(models.HostStatusKnown),
\t\t\tstateswitch.State(models.HostStatusPreparingForInstallation),
\t\t\t"",
\t\t},
\t\tCondition: stateswitch.And(If(IsConnected),
\t\t\tsufficient),
\t\tDestinationState: stateswitch.State(models.HostStatusKnown),
\t})

\tfor _, state := range []stateswitch.State{} {
\t\tsm.AddTransitionRule(stateswitch.TransitionRule{
\t\t\tSourceStates:     []stateswitch.State{state},
\t\t\tDestinationState: state,
\t\t})
\t}

\tvar installing = []stateswitch.State{
\t\tstateswitch.State(models.HostStatusInstalling),
\t}
\tsm.AddTransitionRule(stateswitch.TransitionRule{
\t\tSourceStates:     installing,
\t\tDestinationState: stateswitch.State(models.HostStatusError),
\t})
}
"""
SWAGGER = """
swagger: '2.0'
paths:
  /v2/clusters:
    get: {operationId: v2ListClusters}
  /v1/clusters:
    get: {operationId: ListClusters}
definitions:
  host-stage: {type: string, enum: [Done, Failed]}
  host:
    type: object
    required: [id]
    properties:
      id: {type: string}
      stage: {$ref: '#/definitions/host-stage'}
      kind: {type: string, enum: [Host]}
"""
COMMON = """
case "${AGENT_E2E_TEST_SCENARIO}" in
    "SNO" )
        export NUM_MASTERS=1
        export MASTER_MEMORY=${MASTER_MEMORY:-32768}
        ;;
esac
export BASE_DOMAIN=${BASE_DOMAIN:-test.metalkube.org}
export BRAND_NEW=${BRAND_NEW:-yes}
"""


def repository(folder: Path, *commits: Mapping[str, str]) -> Path:
    """Make a repository with a commit for each mapping of files."""
    folder.mkdir(parents=True)
    names = {f"GIT_{who}_{what}": "x@example.test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env={**os.environ, **names})

    git("init", "-q")
    for files in commits:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", "x")
    return folder


def test_a_tree_is_that_of_its_commit(tmp_path: Path) -> None:
    path = repository(tmp_path / "r", {"a/x.sh": "1"}, {"a/x.sh": "2", "b.sh": ""})
    assert (Tree(path).read("a/x.sh"), Tree(path, "HEAD~1").read("a/x.sh")) == ("2", "1")
    assert list(Tree(path).matching("*.sh")) == ["a/x.sh", "b.sh"]
    with pytest.raises(CheckoutError, match=r"has no file b\.sh; it may have been moved"):
        Tree(path, "HEAD~1").read("b.sh")
    with pytest.raises(CheckoutError, match="'--output=x' is not a commit"):
        Tree(path, "--output=x")
    with pytest.raises(CheckoutError, match=f"{tmp_path}/none: "):
        Tree(tmp_path / "none")
    with pytest.raises(CheckoutError, match=f"{path}: fatal: "):
        Tree(path, "nowhere")


def test_changes() -> None:
    before, after = {"flags": {"a": "1", "b": ""}}, {"flags": {"a": "2", "c": ""}, "steps": {"x": ""}}
    assert list(changes(before, after)) == [
        Change("flags", "a", "1", "2"),
        Change("flags", "b", "", None),
        Change("flags", "c", None, ""),
        Change("steps", "x", None, ""),
    ]


def test_agent(tmp_path: Path) -> None:
    files = {
        agent.ACTIONS: ACTIONS,
        "src/config/agent_config.go": FLAGS,
        "src/config/a_test.go": 'flag.Bool("no", false, "")',
    }
    found = agent.facts(Tree(repository(tmp_path / "r", files)))
    assert found == {"flags": {"url": '""', "help": "false"}, "steps": {"connectivitycheck": "", "inventory": ""}}
    own = agent.own_facts({"url", "help", "cacert"}, {"inventory"})
    assert list(agent.disagreements(found, own)) == [
        Disagreement("flags", "cacert", "agentlab has it, upstream does not"),
        Disagreement("steps", "connectivitycheck", "upstream has it, agentlab does not"),
    ]


def test_transitions() -> None:
    assert assisted.transitions(MACHINE) == {
        "preparingforinstallation -> known",
        "initial -> known",
        "installing -> error",
    }


def test_service(tmp_path: Path) -> None:
    files = {assisted.SWAGGER: SWAGGER, **{path: MACHINE for paths in assisted.MACHINES.values() for path in paths}}
    found = assisted.facts(Tree(repository(tmp_path / "r", files)))
    assert found["routes"] == {"GET /v2/clusters": "listclusters"}
    assert found["fields"] == {"host.id": "required", "host.stage": "optional", "host.kind": "optional"}
    assert found["enumerations"] == {"host.stage": "Done, Failed", "host.kind": "Host"}
    own = {
        **found,
        "routes": {"GET /v2/clusters": "other", "GET /v2/gone": ""},
        "fields": {"host.id": "optional", "host.kind": "optional", "cluster.id": "optional"},
        "enumerations": {"host.stage": "Done"},
    }
    assert [f"{one.fact}: {one.text}" for one in assisted.disagreements(found, own)] == [
        "routes/GET /v2/gone: agentlab has it, upstream does not",
        "fields/host.id: upstream: required; agentlab: optional",
        "fields/host.stage: upstream has it, agentlab does not",
        "enumerations/host.stage: upstream: Done, Failed; agentlab: Done",
    ]


def test_dev_scripts(tmp_path: Path) -> None:
    files = {"common.sh": COMMON, "config_example.sh": "# export NUM_WORKERS=2\n", "agent/x.sh": "echo"}
    found = devscripts.facts(Tree(repository(tmp_path / "r", files)))
    assert found["variables"]["BRAND_NEW"] == "yes" and found["presets"] == {
        "SNO NUM_MASTERS": "1",
        "SNO MASTER_MEMORY": "32768",
    }
    facts = {one.fact: one.text for one in devscripts.disagreements(found)}
    assert facts["variables/BRAND_NEW"] == "agentlab has no row for it; its default is yes"
    assert facts["variables/CLUSTER_NAME"] == "agentlab has a row for it, upstream no longer names it"
    assert not {"variables/BASE_DOMAIN", "defaults/BASE_DOMAIN", "presets/SNO NUM_MASTERS"} & facts.keys()
    other = COMMON.replace("-test.metalkube.org", "-example.com").replace("MEMORY:-32768", "MEMORY:-16384")
    changed = devscripts.facts(Tree(repository(tmp_path / "other", {**files, "common.sh": other})))
    facts = {one.fact: one.text for one in devscripts.disagreements(changed)}
    assert facts["defaults/BASE_DOMAIN"] == "upstream: example.com; agentlab: test.metalkube.org"
    assert facts["presets/SNO MASTER_MEMORY"] == "upstream: 16384; agentlab: 32768"


def test_installer(tmp_path: Path) -> None:
    case = (
        "exec openshift-install agent create image --dir $WORK\n! exec openshift-install agent create rocket\n-- x --\n"
    )
    found = installer.facts(Tree(repository(tmp_path / "r", {f"{installer.CASES}image/sno.txt": case})))
    assert list(found["cases"]) == ["image/sno.txt"] and set(found["checks"]) == {"exec"}
    own = installer.own_facts({"create image", "create cluster-manifests"})
    assert [one.fact for one in installer.disagreements(found, own)] == ["targets/create rocket"]


def test_the_table_is_right() -> None:
    found = canary.read(verb.TABLE)
    assert set(found.sources) == set(canary.SOURCES) == set(verb._FACTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a mapping with the fields sources and accepted"),
        (
            "{sources: {moon: {}}, accepted: []}",
            "sources.moon: is not a source; sources are installer, assisted-service",
        ),
        ("{sources: {agent: {commit: x}}, accepted: []}", "sources.agent: must have the field repository"),
        ("{sources: {agent: {repository: x, commit: HEAD}}, accepted: []}", "commit: 'HEAD' is not a commit of 40"),
        (
            "{sources: {}, accepted: [{source: agent, fact: x}]}",
            r"accepted\[0\]: must have the fields source, fact and reason",
        ),
        (
            "{sources: {}, accepted: [{source: x, fact: x, reason: x}]}",
            r"accepted\[0\].source: 'x' is not one of installer",
        ),
    ],
)
def test_a_table_that_is_not_right(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "canary.yml").write_text(text)
    with pytest.raises(ValueError, match=message):
        canary.read(tmp_path / "canary.yml")


def test_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ACTIONS.replace("}},\n", "}},\n\t\tmodels.StepTypeNew: {&x{}},\n", 1)
    path = repository(tmp_path / "r", {agent.ACTIONS: ACTIONS}, {agent.ACTIONS: more})
    table, page = tmp_path / "canary.yml", tmp_path / "page.md"
    table.write_text(
        "sources: {}\naccepted: [{source: agent, fact: flags/*, reason: known}, {source: agent, fact: steps/none, reason: old}]\n"
    )
    words = [f"--canary={table}", f"--page={page}", f"--checkout=agent={path}", "--since=agent=HEAD~1"]
    assert verb.main(words) == Exit.FAILED
    text = page.read_text()
    assert "- `steps/new`: upstream has it, agentlab does not\n" in text and "- `steps/new` is new\n" in text
    assert "- `flags/url`: agentlab has it, upstream does not (known)\n" in text
    assert "Accepted, but no longer a difference:\n\n- `steps/none`\n" in text
    assert capsys.readouterr().out.startswith("agent: 1 changes, ")
    table.write_text("sources: {}\naccepted: [{source: agent, fact: '*', reason: known}]\n")
    assert verb.main(words) == Exit.OK


def test_verb_with_another_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = repository(tmp_path / "r", {"README": ""})
    assert verb.main([f"--checkout=agent={path}"]) == Exit.FAILED
    assert f"Not compared: {path}: commit " in capsys.readouterr().out
    assert verb.main(["--checkout=moon=x"]) == Exit.FAILED
    assert "--checkout moon=x: must be SOURCE=VALUE; sources are installer" in capsys.readouterr().err
