"""Systemd units of the lab's nodes: what the machine config of a role starts, and what bootstraps the cluster."""

from __future__ import annotations

from ...plugins.module_utils.vocabulary import Component
from . import fencing
from .configs import Config
from .facts import ClusterFacts

STORE = "/var/lib/etcd"
BOOTSTRAP = "/opt/openshift"
DAEMON = "/usr/local/bin/machine-config-daemon"
PULL_SECRET = "/var/lib/kubelet/config.json"
LIVE_PULL_SECRET = "/root/.docker/config.json"

_CONTAINER = (
    "/usr/bin/podman run --name {name} --replace --rm --privileged --net=host --pid=host --uts=host "
    "--log-driver=passthrough --authfile {auth} -v /etc/kubernetes:/etc/kubernetes -v /run/agentlab:/run/agentlab "
    "-v /etc/agentlab:/etc/agentlab:ro{mounts} {image} {command}"
)
# Two units that start at once would each pull the image that they share; the first one pulls it, and the others come after it. What fails
# here fails again in `podman run`, which restarts.
_PULL = (
    "ExecStartPre=-/bin/sh -c 'test -e /var/lib/containers/storage/overlay-images/images.json || "
    "/usr/bin/podman pull --quiet --authfile {auth} {image}'\n"
)
_UNIT = """[Unit]
Description={description}
Wants=network-online.target
After=network-online.target{after}

[Service]
ExecStartPre=/usr/bin/mkdir -p /run/agentlab /var/lib/kubelet {store}
ExecStart={start}
{extra}Restart={restart}
RestartSec=3
TimeoutStartSec=infinity
TimeoutStopSec=20

[Install]
WantedBy=multi-user.target
"""
FIRSTBOOT = {
    "name": "machine-config-daemon-firstboot.service",
    "contents": f"""[Unit]
Description=Machine Config Daemon Firstboot (fetches this node's MachineConfig)
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=infinity
ExecStart=/usr/bin/python3 {DAEMON} firstboot

[Install]
WantedBy=multi-user.target
""",
}


# Units of a real bootstrap.ign that upstream's installer starts, and whose end it waits for; in the lab, `bootkube.service` does
# their work. Not enabled: only upstream's installer needs them.
_BOOTSTRAP_UNITS = tuple(
    {
        "name": name,
        "contents": f"[Unit]\nDescription={what}\n\n[Service]\nType=oneshot\nExecStart=/usr/bin/true\n",
    }
    for name, what in (
        ("approve-csr.service", "Approve CSRs during bootstrap phase (done by the simulated API)"),
        ("progress.service", "Report the completion of the bootstrap process (done by bootkube.service)"),
    )
)


def of_role(facts: ClusterFacts, role: str) -> list[Config]:
    """Return the units of an installed node: the kubelet, and on members of the control plane its programs.

    role: "master", "arbiter" or "worker". `facts["images"]` has the pullspecs of the components that they run: KeyError
    if it lacks one.
    """
    image = facts["images"][Component.HYPERKUBE]
    mounts = " -v /var/lib/kubelet:/var/lib/kubelet"
    start = _CONTAINER.format(name="kubelet", auth=PULL_SECRET, mounts=mounts, image=image, command="hyperkube kubelet")
    pull = _PULL.format(auth=PULL_SECRET, image=image) if role != "worker" else ""
    found = [_unit("kubelet.service", "Kubernetes Kubelet (simulator)", start, pull)]
    if role != "worker":
        start = _CONTAINER.format(
            name="kube-apiserver",
            auth=PULL_SECRET,
            mounts=f" -v {STORE}:{STORE}",
            image=image,
            command="hyperkube kube-apiserver",
        )
        extra = "ExecStopPost=/bin/sh -c 'echo -254 > /run/agentlab/api'\n"
        found.append(
            _unit(
                "kube-apiserver.service",
                "OpenShift API, store and machine-config server (simulators)",
                start,
                extra,
                after="kubelet.service",
            )
        )
    if role == "master" and facts["fencing"]:
        start = _CONTAINER.format(
            name="pacemaker",
            auth=PULL_SECRET,
            mounts=f" -v {fencing.COROSYNC}:{fencing.COROSYNC}:ro -v /var/lib/pacemaker:/var/lib/pacemaker -v /dev/shm:/dev/shm",
            image=facts["images"][Component.CLUSTER_ETCD_OPERATOR],
            command="two-node-fencing",
        )
        before = "ExecStartPre=/usr/bin/mkdir -p /var/lib/pacemaker\n"
        found.append(_unit("pacemaker.service", "Pacemaker and Corosync, which fence the other node", start, before))
    return found


def of_bootstrap(facts: ClusterFacts) -> list[Config]:
    """Return the units of the bootstrap host: `bootkube.service`, and those that only upstream's installer starts."""
    mounts = f" -v {BOOTSTRAP}:{BOOTSTRAP} -v /var/log:/var/log"
    command = "hyperkube kube-apiserver --bootstrap"
    start = _CONTAINER.format(
        name="bootkube",
        auth=LIVE_PULL_SECRET,
        mounts=mounts,
        image=facts["images"][Component.HYPERKUBE],
        command=command,
    )
    bootkube = _unit("bootkube.service", "Bootstrap a Kubernetes cluster (simulator)", start, restart="on-failure")
    return [bootkube, *_BOOTSTRAP_UNITS]


def _unit(
    name: str, description: str, start: str, extra: str = "", *, restart: str = "always", after: str = ""
) -> Config:
    text = _UNIT.format(
        description=description,
        start=start,
        extra=extra,
        store=STORE,
        restart=restart,
        after=f" {after}" if after else "",
    )
    return {"name": name, "enabled": True, "contents": text}
