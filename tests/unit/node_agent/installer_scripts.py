"""Programs of our own that make the requests of upstream's installer and controller in their dry-run mode, for tests.

They run in a mount namespace of the swarm, where only the system's Python is sure to be there.
"""

from __future__ import annotations

from pathlib import Path

COMMON = """#!/usr/bin/env python3
import argparse, json, os, pathlib, subprocess, sys, time, urllib.request

V2 = "/api/assisted-install/v2"
assert os.environ["DRY_ENABLE"] == "true"


def nsenter(*command):
    return subprocess.run(["nsenter", "--target", "1", "--mount", "--", *command], capture_output=True, text=True)


def exists(path):
    return nsenter("stat", path).returncode == 0


def call(base, method, path, body=None, kind="application/json"):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"Content-Type": kind, "X-Secret-Key": os.environ.get("PULL_SECRET_TOKEN", "")}
    with urllib.request.urlopen(urllib.request.Request(base + V2 + path, data, headers, method=method), timeout=20) as answer:
        return json.loads(answer.read() or "null")


for folder in ("/root", "/tmp", "/var/log"):
    assert not os.listdir(folder), folder
assert not set(os.listdir("/run")) - {"mount"}  # of mount(8) itself
assert sorted(os.listdir("/opt")) == ["bin", "openshift", "swarm"]
for refused in (("reboot",), ("mkdir", "-p", "/etc/x"), ("touch", "/etc/x"), ("sh", "-c", "true"), ("podman", "images")):
    assert nsenter(*refused).returncode == 1, refused
for folder in ("/opt", "/root", "/tmp", "/var/log"):
    (pathlib.Path(folder) / "written-by-a-program").write_text("x")
"""

INSTALLER = (
    COMMON
    + """
parser = argparse.ArgumentParser()
for name in ("role", "infra-env-id", "cluster-id", "host-id", "boot-device", "controller-image", "url", "agent-image"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--control-plane-count", type=int, required=True)
options = parser.parse_args()
assert os.environ["DRY_HOST_ID"] == options.host_id
single = options.control_plane_count == 1
host = f"/infra-envs/{options.infra_env_id}/hosts/{options.host_id}"


def progress(stage, info=""):
    call(options.url, "PUT", host + "/progress", {"current_stage": stage, "progress_info": info})


progress("Starting installation", options.role)
nsenter("mkdir", "-p", "/opt/install-dir")
progress("Installing", options.role)
if single:
    call(options.url, "GET", f"/clusters/{options.cluster_id}/downloads/files?file_name=bootstrap.ign")
    assert exists("/usr/bin/oc") and not exists("/run/media/iso/registry")
    progress("Waiting for bootkube")
    while not exists("/opt/openshift/.bootkube.done"):
        time.sleep(0.05)
    assert exists("/opt/openshift/master.ign")
else:
    call(options.url, "GET", f"/infra-env/{options.infra_env_id}/hosts/{options.host_id}/downloads/ignition")
progress("Writing image to disk")
written = nsenter("dry-installer", "install", options.boot_device)
assert written.returncode == 0, written
for line in written.stdout.splitlines():
    progress("Writing image to disk", line.rpartition("(")[2].rstrip(")"))
if options.role == "worker":
    progress("Waiting for control plane")
    while True:
        masters = call(options.url, "GET", f"/clusters/{options.cluster_id}/hosts?role=master")
        if sum(one["progress"].get("current_stage") == "Done" for one in masters) >= 2:
            break
        time.sleep(0.1)
call(options.url, "PUT", host + "/logs-progress", {"logs_state": "requested"})
assert nsenter("podman", "run", "--rm", options.agent_image, "logs_sender").returncode == 0
progress("Rebooting")
nsenter("touch", os.environ["DRY_FAKE_REBOOT_MARKER_PATH"])
"""
)

CONTROLLER = (
    COMMON
    + """
url, cluster = os.environ["INVENTORY_URL"], "/clusters/" + os.environ["CLUSTER_ID"]
assert os.environ["OPENSHIFT_VERSION"] and int(os.environ["CONTROL_PLANE_COUNT"]) in (1, 2, 3)
while not os.path.exists(os.environ["DRY_FAKE_REBOOT_MARKER_PATH"]):
    time.sleep(0.05)
nodes = json.loads(pathlib.Path(os.environ["DRY_CLUSTER_HOSTS_PATH"]).read_text())
done, finalized = set(), False
while True:
    status = call(url, "GET", cluster + "?exclude-hosts=true")["status"]
    if status in ("installed", "error", "cancelled"):
        break
    joined = {node["hostname"] for node in nodes if exists(node["rebootMarkerPath"])}
    for host in call(url, "GET", cluster + "/hosts"):
        if host["requested_hostname"] in joined - done:
            done.add(host["requested_hostname"])
            for stage in ("Joined", "Done"):
                call(url, "PUT", f"/infra-envs/{host['infra_env_id']}/hosts/{host['id']}/progress", {"current_stage": stage})
    if status == "finalizing" and not finalized:
        finalized = True
        for stage in ("Waiting for cluster operators", "Adding router ca"):
            call(url, "PUT", cluster + "/progress", {"finalizing_stage": stage})
        for operator in call(url, "GET", cluster + "/monitored-operators"):
            call(url, "PUT", cluster + "/monitored-operators", {"name": operator["name"], "status": "available"})
        call(url, "POST", cluster + "/uploads/ingress-cert", "-----BEGIN CERTIFICATE-----")
        call(url, "POST", cluster + "/actions/complete-installation", {"is_success": True})
        # After that, upstream's controller still reports its last stage, which the service refuses.
        try:
            call(url, "PUT", cluster + "/progress", {"finalizing_stage": "Done"})
        except urllib.error.HTTPError as error:
            assert error.code == 400
    time.sleep(0.1)
call(url, "PUT", cluster + "/logs-progress", {"logs_state": "completed"})
body = b'--x\\r\\nContent-Disposition: form-data; name="upfile"; filename="logs.tar.gz"\\r\\n\\r\\nlogs\\r\\n--x--\\r\\n'
call(url, "POST", cluster + "/logs?logs_type=controller", body, "multipart/form-data; boundary=x")
"""
)


def write(folder: Path, name: str, text: str) -> Path:
    """Write an executable."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path
