"""No text of a request takes the service more than linear time: no pattern fits one text in many ways."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .lab import SSH_KEY, Agent, Lab
from .test_hostile import BODIES

#: Seconds of the thread for a request and its answer; most take a millisecond.
MOST = 0.5
#: Characters of the texts for a quadratic pattern; 24 units are enough for an exponential one, and come first.
LONG = 20_000
TEXTS = [
    "a" * 24 + " ", "a:" * 24 + "x", "a:" * 24 + "/x", '""' * 24 + " ", "1" * 4500, "4." + "1" * 4500, "4.14." + "9" * 5000,
    *(unit * (LONG // len(unit)) + "!" for unit in ("a", "a-", "a.", "1.", "a:", "a=", "a ", "a,", ":", "/", " ", "[", "1h", "52:54:", "1:1@", '["a",')),
    "1" * LONG + ".ab", "http://" + "a." * LONG, "http://" + "[" * LONG, "quay.io/" + "a/" * LONG, "ssh-rsa " + "A" * LONG,
    "-----BEGIN CERTIFICATE-----" * (LONG // 27),
]  # fmt: skip


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a text in a body."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from places(entry, (*place, key))
    elif isinstance(value, list):
        for at, entry in enumerate(value):
            yield from places(entry, (*place, at))
    elif isinstance(value, str):
        yield place


def planted(body: dict[str, Any], place: tuple[Any, ...], text: str) -> dict[str, Any]:
    made = copy.deepcopy(body)
    node: Any = made
    for part in place[:-1]:
        node = node[part]
    node[place[-1]] = text
    return made


MORE: dict[str, dict[str, Any]] = {
    "/clusters": {"http_proxy": "x", "https_proxy": "x", "no_proxy": "x", "additional_ntp_source": "x", "tags": "x",
                  "ssh_public_key": SSH_KEY, "ingress_vips": [{"ip": "192.168.111.4"}], "service_networks": [{"cidr": "172.30.0.0/16"}],
                  "ocp_release_image": "x",
                  "olm_operators": [{"name": "lvm", "properties": "x"}], "ignition_endpoint": {"url": "x", "ca_certificate": "x"},
                  "disk_encryption": {"enable_on": "all", "mode": "tang", "tang_servers": "x"}},
    "/infra-envs": {"kernel_arguments": [{"operation": "append", "value": "x"}], "proxy": {"http_proxy": "x", "https_proxy": "x", "no_proxy": "x"},
                    "additional_ntp_sources": "x", "ssh_authorized_key": SSH_KEY, "additional_trust_bundle": "x", "ignition_config_override": "x",
                    "openshift_version": "4.14"},
    "/infra-envs/{i}/hosts/{h}": {"installation_disk_path": "x", "machine_config_pool_name": "x", "ignition_endpoint_token": "x"},
}  # fmt: skip

#: Fields without which a request is refused before the others are checked; of other requests it is all of BODIES.
NEEDED = {
    "/clusters": ("name", "openshift_version", "pull_secret", "base_dns_domain"),
    "/infra-envs": ("name", "pull_secret"),
}


@pytest.mark.parametrize(
    ("method", "template", "good"), BODIES, ids=lambda value: value if isinstance(value, str) else ""
)
async def test_texts_that_are_nearly_right(tmp_path: Path, method: str, template: str, good: dict[str, Any]) -> None:
    """A VIP of 48 characters held the service for a second, and one of 100 indefinitely: `(a*:a*){2,}` fits a text in many ways."""
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        path = template.format(c=cluster["id"], i=infra_env["id"], h=agent.id)
        fields = {**good, **MORE.get(template, {})}
        needed = () if method == "PATCH" else NEEDED.get(template, tuple(good))
        for place in places(fields):
            body = {name: fields[name] for name in (*needed, place[0])}
            for text in TEXTS:
                before = time.thread_time()
                code, answer, __ = await lab.raw(method, path, json=planted(body, place, text))
                assert code < 500, (place, text[:60], answer)
                assert time.thread_time() - before < MOST, (place, text[:60])
