"""Common mistakes are refused with upstream's status and words."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import limits, refusals
from ansible_collections.agentlab.ocp.payload.api_server.errors import ApiError

from .lab import PULL_SECRET, SSH_KEY, Agent, Lab

MACHINE = [{"cidr": "192.168.111.0/24"}]


def vips(api: str, ingress: str) -> dict[str, Any]:
    return {key: [{"ip": ip} for ip in text.split()] for key, text in (("api_vips", api), ("ingress_vips", ingress))}


MISTAKES: list[tuple[dict[str, Any], str]] = [
    (
        {"name": "Upper"},
        "Cluster name format is not valid: 'Upper'. Name must start and end with either a letter or number and consist of lower-case letters, "
        "numbers, and hyphens. Subdomains in cluster names are only valid with none platform.",
    ),
    (
        {"base_dns_domain": "no_underscores.example"},
        r"DNS format mismatch: no_underscores.example domain name is not valid. Must match regex "
        r"[^([a-z\d]([\-]*[a-z\d]+)*\.)+[a-z\d]+([\-]*[a-z\d]+)+$], be no more than 255 characters, and not be in dotted decimal format "
        "(##.##.##.##)",
    ),
    ({"base_dns_domain": "a" * 64 + ".example"}, f"DNS label '{'a' * 64}' is longer than 63 bytes"),
    ({"base_dns_domain": ".".join(["abcdefgh"] * 22)}, "Combination of cluster name and base DNS domain too long"),
    ({"pull_secret": "{"}, "pull secret must be a well-formed JSON"),
    ({"pull_secret": "null"}, "pull secret must contain 'auths' JSON-object field"),
    ({"ssh_public_key": " "}, "SSH key:  does not match any supported type: ssh-rsa, ssh-ed25519, ecdsa-[VARIANT]"),
    ({"pull_secret": "{}"}, "pull secret must contain 'auths' JSON-object field"),
    (
        {"pull_secret": '{"auths": {"r": {"auth": 1}}}'},
        "invalid pull secret: 'auth' field of \"r\" is 1 but should be a string",
    ),
    (
        {"pull_secret": '{"auths": {"r": {"auth": "!"}}}'},
        "invalid pull secret: 'auth' field of \"r\" is not base64-encoded",
    ),
    (
        {"pull_secret": '{"auths": {"r": {"auth": "YQ=="}}}'},
        "invalid pull secret: 'auth' for r is not in 'user:password' format",
    ),
    (
        {"ssh_public_key": "AAAA"},
        "SSH key: AAAA does not match any supported type: ssh-rsa, ssh-ed25519, ecdsa-[VARIANT]",
    ),
    ({"ssh_public_key": SSH_KEY[:40] + "!"}, None),
    ({"machine_networks": [{"cidr": ""}]}, None),
    (
        {"machine_networks": [*MACHINE, {"cidr": "10.0.0.0/24"}]},
        "Single-stack cluster cannot contain multiple Machine Networks",
    ),
    (
        {"machine_networks": [*MACHINE, {"cidr": "fd00::/64"}, {"cidr": "fd01::/64"}]},
        "Expected 2 machine networks, found 3",
    ),
    (
        vips("192.168.111.5", ""),
        "1 error occurred:\n\t* configuration must include the same number of apiVIPs (got 1) and ingressVIPs (got 0)\n\n",
    ),
    (
        vips("192.168.111.5 192.168.111.6 192.168.111.7", "192.168.111.4"),
        "2 errors occurred:\n\t* apiVIPs supports 2 vips. got: 3\n\t"
        "* configuration must include the same number of apiVIPs (got 3) and ingressVIPs (got 1)\n\n",
    ),
    (
        vips("192.168.111.5", "192.168.111.5"),
        '1 error occurred:\n\t* The IP address "192.168.111.5" appears both in apiVIPs and ingressVIPs\n\n',
    ),
    (
        vips("192.168.111.5 192.168.111.6", "192.168.111.4 fd00::4"),
        "dual-stack apiVIPs must include exactly one IPv6 address",
    ),
    (
        vips("10.0.0.5", "192.168.111.4"),
        "1 error occurred:\n\t* api-vip <10.0.0.5> does not belong to machine-network-cidr <192.168.111.0/24>\n\n",
    ),
    (
        vips("192.168.111.5", "192.168.111.255"),
        "1 error occurred:\n\t* ingress-vip <192.168.111.255> is the broadcast address of machine-network-cidr <192.168.111.0/24>\n\n",
    ),
    (
        {"vip_dhcp_allocation": True, **vips("192.168.111.5", "192.168.111.4")},
        "Setting API VIPs is forbidden when cluster is in vip-dhcp-allocation mode",
    ),
    (
        {"user_managed_networking": True, **vips("192.168.111.5", "192.168.111.4")},
        # Upstream's message when it is registered, and when it is changed.
        ("API VIPs cannot be set with User Managed Networking", "User Managed Networking cannot be set with API VIPs"),
    ),
    ({"http_proxy": "proxy"}, "Failed to validate HTTP Proxy: Proxy URL format is not valid: 'proxy'"),
    (
        {"http_proxy": "https://proxy.example"},
        "Failed to validate HTTP Proxy: The URL scheme must be http and specified in the URL: 'https://proxy.example'",
    ),
    ({"no_proxy": "a.example,a.example"}, "duplicate no_proxy entry defined: a.example"),
    ({"additional_ntp_source": "no time"}, "Invalid NTP source: no time"),
    (
        {"additional_ntp_source": "1.2.3.4", "ntp_sources": "1.2.3.4"},
        "ntp_sources and additional_ntp_source are mutually exclusive",
    ),
    (
        {"tags": "a,,b"},
        "Invalid format for Tags: a,,b. Tags should be a comma-separated list (e.g. tag1,tag2,tag3). Each tag can consist of the following "
        "characters: Alphanumeric (aA-zZ, 0-9), underscore (_) and white-spaces.",
    ),
]


async def test_mistakes_of_clusters(tmp_path: Path) -> None:
    """When one is registered and, all but name and mode, when it is changed."""
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        good = {
            "name": "ostest",
            "openshift_version": cluster["openshift_version"],
            "base_dns_domain": "test.example",
            "pull_secret": PULL_SECRET,
            "machine_networks": MACHINE,
        }
        version = cluster["openshift_version"]
        sdn = (
            {"network_type": "OpenShiftSDN"},
            f"Openshift version {version} is not supported for OpenShiftSDN NetworkType",
        )
        for fields, expected in (*MISTAKES, sdn):
            text, text_of_change = expected if isinstance(expected, tuple) else (expected, expected)
            made = await lab.call("POST", "/clusters", {**good, **fields}, 400)
            prefix = "pull secret for new cluster is invalid: " if "pull_secret" in fields else ""
            assert text is None or made["reason"] == prefix + text, fields
            changed = await lab.call("PATCH", f"/clusters/{cluster['id']}", fields, 400)
            assert text is None or changed["reason"] == text_of_change, fields
        one = {**good, "high_availability_mode": "None"}
        for fields, text in (
            ({"high_availability_mode": "Full", "control_plane_count": 9}, None),
            (
                {"high_availability_mode": "None", "control_plane_count": 3},
                "single-node clusters must have a single control plane node",
            ),
            (
                {**one, "user_managed_networking": False},
                "Can't disable user-managed-networking on single node OpenShift",
            ),
            ({**one, "vip_dhcp_allocation": True}, "VIP DHCP Allocation cannot be enabled on single node OpenShift"),
            ({**one, "platform": {"type": "baremetal"}}, "Can't set baremetal platform on single node OpenShift"),
        ):
            made = await lab.call("POST", "/clusters", {**good, **fields}, 400)
            assert text is None or made["reason"] == text
        for fields, text in (
            (
                {"service_networks": [{"cidr": "10.128.0.0/16"}]},
                "ServiceNetworkCidr and ClusterNetworkCidr: CIDRS 10.128.0.0/16 and 10.128.0.0/14 overlap",
            ),
            (
                {"service_networks": [{"cidr": "172.30.0.0/28"}]},
                "Service network CIDR 172.30.0.0/28: Address mask size must be between 1 to 25 and must include at least 128 addresses",
            ),
            (
                {"cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 26}]},
                "Cluster CIDR size: Host prefix, now 26, must be less than or equal to 25 to allow at least 128 addresses",
            ),
        ):
            assert (await lab.call("PATCH", f"/clusters/{cluster['id']}", fields, 400))["reason"] == text
        assert len(await lab.call("GET", "/clusters")) == 1


async def test_mistakes_of_hosts_and_actions(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        c = f"/clusters/{cluster['id']}"
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        await agent.poll()
        for fields, status, text in (
            ({"host_name": "localhost"}, 400, "The host name localhost is forbidden"),
            ({"host_name": "Not_A_Name"}, 400, None),
            ({"host_name": "name\n"}, 400, None),
            (
                {"host_name": "a" * 64},
                400,
                f"hostname is too long, must be 63 characters or less. Hostname: {'a' * 64} has 64 characters",
            ),
            (
                {"disks_selected_config": [{"id": "nothing", "role": "install"}]},
                409,
                "Requested installation disk is not part of the host's valid disks",
            ),
            (
                {"disks_selected_config": [{"id": name, "role": "install"} for name in "ab"]},
                409,
                "duplicate setting of installation path by the user",
            ),
        ):
            refused = await lab.call("PATCH", agent.path, fields, status)
            assert text is None or refused["reason"] == text, fields
        assert (await lab.call("POST", f"{agent.path}/actions/unbind", status=409))["reason"] == (
            f"Cannot unbind Host {agent.id}. InfraEnv {infra_env['id']} is bound to Cluster {cluster['id']}"
        )
        lab.engine.hosts[agent.id]["status"] = "installing"
        shown = "[discovering known disconnected insufficient pending-for-input]"
        for fields, status, text in (
            (
                {"host_role": "worker"},
                400,
                f"Host is in installing state, host role can be set only in one of {shown} states",
            ),
            (
                {"host_name": "a"},
                409,
                f"Host is in installing state, host name can be set only in one of {shown} states",
            ),
        ):
            assert (await lab.call("PATCH", agent.path, fields, status))["reason"] == text
        refused = await lab.call("POST", f"{c}/actions/install", status=409)
        assert refused["reason"].startswith("Cluster is not ready for installation, ")
        for action in ("cancel", "reset"):
            assert (await lab.call("POST", f"{c}/actions/{action}", status=409))[
                "reason"
            ] == "no condition found to run transition"
        names = [event["name"] for event in await lab.call("GET", f"/events?cluster_id={cluster['id']}")]
        assert {"cancel_installation_failed", "reset_installation_failed"} <= set(names)
        assert (await lab.call("GET", c.replace(cluster["id"][:8], "00000000"), status=404))[
            "reason"
        ] == "record not found"
        lab.engine.clusters[cluster["id"]]["status"] = "cancelled"  # which the monitor, every 20 ms, leaves as it is
        assert (await lab.call("PATCH", c, {"name": "other"}, 409))["reason"] == (
            f"Cluster {cluster['id']} is in cancelled state, cluster can be updated only in one of "
            "[insufficient ready pending-for-input adding-hosts]"
        )


async def test_mistakes_of_manifests(tmp_path: Path) -> None:
    def encoded(text: bytes) -> str:
        return base64.b64encode(text).decode()

    bomb = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 9)
    )
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        ident, path = cluster["id"], f"/clusters/{cluster['id']}/manifests"
        good = {"folder": "openshift", "file_name": "a.yaml", "content": encoded(b"a: 1")}
        where = f"of file openshift/a.yaml for cluster ID {ident}"
        for fields, status, text in (
            ({"file_name": ".yaml"}, 422, f"Cluster manifest .yaml for cluster {ident} has an invalid filename."),
            (
                {"file_name": "a b.yaml"},
                422,
                f"Cluster manifest a b.yaml for cluster {ident} should not include a space in its name.",
            ),
            ({"file_name": "a\0.yaml"}, 422, None),
            ({"file_name": "a" * 300 + ".yaml"}, 422, None),
            ({"content": "  "}, 400, f"Manifest content {where} is empty"),
            ({"content": "!"}, 400, f"failed to base64-decode cluster manifest content for cluster {ident}"),
            (
                {"content": encoded(b"x" * (limits.MAX_MANIFEST + 1))},
                400,
                f"Manifest content {where} exceeds the maximum file size of 1MiB",
            ),
            ({"content": encoded(b"a: [")}, 400, None),
            (
                {"content": encoded(bomb)},
                400,
                f"Manifest content {where} has an invalid YAML format: yaml: line 4: document contains excessive aliasing",
            ),
            (
                {"content": encoded(b"&a [*a]")},
                400,
                f"Manifest content {where} has an invalid YAML format: yaml: line 1: anchor 'a' value contains itself",
            ),
            ({"file_name": "a.json", "content": encoded(b"{")}, 400, None),
            ({"file_name": "a.yaml.patch", "content": encoded(b"a: 1")}, 400, None),
        ):
            refused = await lab.call("POST", path, {**good, **fields}, status)
            assert text is None or refused["reason"] == text, fields
        await lab.call("POST", path, good, 201)
        assert (
            "is not distinct between {manifest, openshift} folders"
            in (await lab.call("POST", path, {**good, "folder": "manifests"}, 400))["reason"]
        )
        assert (await lab.call("GET", f"{path}/files?file_name=b.yaml", status=404))["reason"] == (
            f"Cluster manifest manifests/b.yaml doesn't exist in cluster {ident}"
        )
        lab.engine.clusters[ident]["status"] = "installing"
        await lab.call("POST", path, {**good, "file_name": "b.yaml"}, 201)  # too late to matter, as upstream's takes it
        assert (await lab.call("DELETE", path, query={"file_name": "b.yaml"}, status=400))["reason"] == (
            f"cluster {ident} is not in pre-installation states, can't modify manifests after installation has been started"
        )


def test_what_is_right_is_not_refused() -> None:
    for name in ("rsa", "dss"):
        with pytest.raises(ApiError):
            refusals.ssh_keys(f"ssh-{name} AAAA")
    refusals.ssh_keys(f"{SSH_KEY} me@host\n{SSH_KEY}\n")
    refusals.pull_secret(json.dumps({"auths": {"a": {}, "b": {"auth": "dTpw"}}}))
    refusals.proxies(
        "http://[fd00::1]:3128", "https://user:pass@proxy.example:8080/", ".example,10.0.0.0/8,fd00::/8,::1,a_b"
    )
    refusals.proxies(None, None, "*")
    refusals.ntp_sources("192.168.111.1,fd00::1,ntp.example", None)
    refusals.dns_name("ostest", "test.metalkube.org")
    refusals.vips(
        ["192.168.111.5", "fd00::5"],
        ["192.168.111.4", "fd00::4"],
        {"machine_networks": [*MACHINE, {"cidr": "fd00::/64"}]},
    )
    refusals.vips(["1.2.3.4"], ["1.2.3.4"], {"load_balancer": {"type": "user-managed"}})


async def test_a_static_network_without_a_keyfile(tmp_path: Path) -> None:
    """It was taken once, and its image then answered 500."""
    named = [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}]
    async with Lab(tmp_path) as lab:
        body = {
            "name": "env",
            "pull_secret": PULL_SECRET,
            "static_network_config": [{"network_yaml": "interfaces: []", "mac_interface_map": named}],
        }
        told = await lab.call("POST", "/infra-envs", body, 400)
        assert (
            "failed to validate network yaml for host 0, nmstate generated an empty NetworkManager config file content"
            in told["reason"]
        )
        body["static_network_config"][0]["network_yaml"] = "interfaces: ["
        assert "network_yaml" in (await lab.call("POST", "/infra-envs", body, 400))["reason"]
