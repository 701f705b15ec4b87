"""Cases of the verbs that other programs have, too: openshift-install, oc, coreos-installer, nmstatectl, dev-scripts.

`verbs.py` drives them with the others. They need files of the installed cluster, or its API, but change nothing of it.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import yaml
from ansible_collections.agentlab.ocp.ci.calls import Verbs, expect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import inputs, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.release import mirror_set
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit, RunFile


def _create(verbs: Verbs) -> None:
    """As openshift-install, with its words."""
    (verbs.folder / "assets").mkdir()
    verbs.call("agent", "create", "agent-config-template", "--dir", "assets")
    expect((verbs.folder / "assets/agent-config.yaml").exists(), "agent-config-template")


def _wait_for(verbs: Verbs) -> None:
    inside = verbs.command("wait-for", "install-complete", "--dir", str(verbs.run_dir))
    expect("Install complete!" in verbs.call("exec", "--", "sh", "-c", f"{' '.join(inside)} 2>&1"), "wait-for")


def _compare(verbs: Verbs) -> None:
    """This command line as the other build: no difference."""
    program = verbs.folder / "openshift-install"
    ours = shlex.join(verbs.command("agent"))
    program.write_text(
        f'#!/bin/sh\nshift\n[ $# = 0 ] && echo "openshift-install unreleased-1" || exec {ours} "$@" --consume\n'
    )
    program.chmod(0o755)
    words = ("--dir", str(verbs.run_dir), "--binary", str(program), "--target", "cluster-manifests", "-o", "json")
    found = verbs.call("exec", "--", "sh", "-c", f"{shlex.join(verbs.command('compare', *words))} 2>/dev/null")
    shown = json.loads(found)
    expect(shown["differences"] == [] and shown["agreeing_files"] > 3, found)


def _monitor_add_nodes(verbs: Verbs) -> None:
    """A node of the cluster is one that has joined."""
    nodes = json.loads(verbs.call("kubectl", "get", "nodes", "-o", "json"))["items"]
    addresses = [a["address"] for node in nodes for a in node["status"]["addresses"] if a["type"] == "InternalIP"]
    inside = verbs.command("monitor-add-nodes", "--dir", str(verbs.run_dir), *addresses)
    shown = verbs.call("exec", "--", "sh", "-c", f"{' '.join(inside)} 2>&1")
    expect(all(f"Node {address}: Node is Ready" in shown for address in addresses), shown)


def _node_image(verbs: Verbs) -> None:
    """The image of a node that is never booted; the API of the cluster and the registry are in the sandbox."""
    kubeconfig = ("--kubeconfig", str(verbs.run_dir / RunFile.KUBECONFIG))
    words = ("create", "--mac-address", "52:54:00:aa:bb:01", "--name", "extraworker-0", "-o", "extra.iso", *kubeconfig)
    shown = verbs.call("exec", "--", "sh", "-c", f"{shlex.join(verbs.command('node-image', *words))} 2>&1")
    expect("extra.iso" in shown and (verbs.folder / "extra.iso").exists(), shown)
    refused = verbs.call("add-nodes", status=Exit.USAGE)
    expect("has no node to add" in refused, refused)


def _iso(verbs: Verbs) -> None:
    expect("ignition" in json.loads(verbs.call("iso", "ignition", "show", f"{verbs.run_dir}/agent.x86_64.iso")), "iso")


def _pxe(verbs: Verbs) -> None:
    verbs.call("pxe", "ignition", "wrap", "-o", "initrd", given='{"ignition": {"version": "3.2.0"}}')
    expect("3.2.0" in verbs.call("pxe", "ignition", "unwrap", "initrd"), "pxe")


def _dev(verbs: Verbs) -> None:
    expect(json.loads(verbs.call("dev", "show", "iso", f"{verbs.run_dir}/agent.x86_64.iso"))["records"], "dev")


def _pack(verbs: Verbs) -> None:
    """A copy of the base ISO gets the recipe of its minimal ISO again."""
    base, full, minimal = (
        Path(verbs.json("payload", "show")["iso"]),
        verbs.folder / "full.iso",
        verbs.folder / "minimal.iso",
    )
    shutil.copyfile(base, full)
    try:
        verbs.call("iso", "extract", "minimal-iso", str(full), str(minimal))
        verbs.call("pack", "minimal-iso", str(full), str(minimal), "--consume")
        expect(not minimal.exists() and full.stat().st_size == base.stat().st_size, "pack minimal-iso")
    finally:
        full.unlink()


def _mirror(verbs: Verbs) -> None:
    """What would be copied if the lab's registry did not have the release; nothing is."""
    config = yaml.safe_load((verbs.run_dir / inputs.LAST / RunFile.INSTALL_CONFIG).read_text())
    sources = config["imageDigestSources"]
    target = f"{sources[0]['mirrors'][0].partition('/')[0]}/copy"
    secret = verbs.folder / "pull-secret.json"
    secret.touch(mode=0o600)
    secret.write_text(config["pullSecret"])
    (verbs.folder / "ca.pem").write_text(config["additionalTrustBundle"])
    (verbs.folder / "mirrors.yaml").write_text(yaml.safe_dump(mirror_set.resource(sources)))
    words = (
        rundir.release_image(verbs.run_dir), "--to", target, "--pull-secret", "pull-secret.json", "--trust", "ca.pem",
        "--mirrors", "mirrors.yaml", "--dry-run",
    )  # fmt: skip
    shown = verbs.call("exec", "--", "sh", "-c", f"{shlex.join(verbs.command('mirror', *words))} 2>&1")
    expect(f" to copy to {target}, " in shown and f" -> {target}/openshift/release-images:" in shown, shown)


def _nmstate(verbs: Verbs) -> None:
    state = "interfaces: [{name: eth1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]"
    expect("eth1.nmconnection" in verbs.call("nmstate", "gc", "-", given=state), "nmstate")


def _import(verbs: Verbs) -> None:
    """A configuration of dev-scripts becomes a profile, and that the same configuration."""
    profile = verbs.call("import", "devscripts", "-", given="export AGENT_E2E_TEST_SCENARIO=SNO_IPV4\n")
    (verbs.folder / "sno.yml").write_text(profile)
    expect("SNO_IPV4" in verbs.call("export", "devscripts", "sno.yml"), "export devscripts")


CASES: dict[str, Callable[[Verbs], None]] = {
    "create": _create,
    "wait-for": _wait_for,
    "compare": _compare,
    "monitor-add-nodes": _monitor_add_nodes,
    "add-nodes": _node_image,
    "node-image": _node_image,
    "iso": _iso,
    "pxe": _pxe,
    "dev": _dev,
    "pack": _pack,
    "mirror": _mirror,
    "nmstate": _nmstate,
    "import": _import,
    "export": _import,
}
