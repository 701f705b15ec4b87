"""Rules for `platform`: one of those that the agent-based installer knows, and its VIPs."""

from __future__ import annotations

from ...addresses import version
from ...vocabulary import WITH_VIPS
from .. import check
from ..errors import FieldErrors
from ..install_config import platform_name
from ..models import InstallConfig, Section
from .baremetal import check_baremetal, check_provisioning
from .nutanix import check_nutanix
from .vsphere import check_vsphere, check_vsphere_credentials

_KNOWN = ("aws", "azure", "baremetal", "external", "gcp", "ibmcloud", "none", "nutanix", "openstack", "powervc",
          "powervs", "vsphere")  # fmt: skip


def check_platform(config: InstallConfig, errors: FieldErrors) -> None:
    """Check `platform` as for every way to install.

    Exactly one must be given; its section, load balancer and DNS records are checked, with the installer's texts.
    """
    given = [name for name, value in config["platform"].items() if value is not None]
    if not given:
        errors.invalid("platform", "", f"must specify one of the platforms ({', '.join(_KNOWN)})")
        return
    platform = platform_name(config)
    for other in given[1:]:
        errors.invalid(
            "platform",
            platform,
            f'must only specify a single type of platform; cannot use both "{platform}" and "{other}"',
        )
    section = config["platform"][platform] or {}
    path = f"platform.{platform}"
    if platform == "baremetal":
        check_baremetal(section, errors)
    elif platform == "vsphere":
        check_vsphere(section, errors)
    elif platform == "nutanix":
        check_nutanix(section, errors)
    if platform in WITH_VIPS:
        balancer = section.get("loadBalancer")
        kind = (balancer or {}).get("type", "")
        if balancer is not None and kind not in ("OpenShiftManagedDefault", "UserManaged"):
            errors.invalid(f"{path}.loadBalancer.type", kind, "invalid load balancer type")
        if section.get("dnsRecordsType") == "External" and kind != "UserManaged":
            errors.invalid(
                f"{path}.dnsRecordsType", "External",
                "external DNS records can only be configured with user-managed loadbalancers",
            )  # fmt: skip


def check_agent_section(config: InstallConfig, errors: FieldErrors) -> None:
    """Check what the agent-based installer wants of `platform` in addition.

    That is the provisioning network of baremetal when a host has a BMC, and complete credentials of vSphere.
    """
    platform = platform_name(config)
    section = config["platform"].get(platform) or {}
    if platform == "baremetal":
        check_provisioning(config, section, errors)
    elif platform == "vsphere":
        check_vsphere_credentials(section, errors)


def check_vips(config: InstallConfig, errors: FieldErrors) -> None:
    """Check the VIPs of a platform that has some; Nutanix' are put into order.

    API and ingress need one or two each, of different families, in a machine network unless the user has the balancer.
    """
    platform = platform_name(config)
    if platform not in WITH_VIPS:
        return
    section, path = config["platform"][platform], f"platform.{platform}"
    if platform == "nutanix":
        _ipv4_first(section, path, errors)
    user_managed = (section.get("loadBalancer") or {}).get("type") == "UserManaged"
    lists = {"API": section.get("apiVIPs") or [], "Ingress": section.get("ingressVIPs") or []}
    fields = {"API": f"{path}.apiVIPs", "Ingress": f"{path}.ingressVIPs"}
    lacking = {
        "API": "must specify VIP for ingress, when VIP for API is set",
        "Ingress": "must specify VIP for API, when VIP for ingress is set",
    }
    for label, other in (("API", "Ingress"), ("Ingress", "API")):
        found, at = lists[label], fields[label]
        if not found:
            errors.required(at, f"must specify at least one VIP for the {label}")
        elif len(found) > 2:
            errors.too_many(at, len(found), 2)
        else:
            _vip_list(config, found, at, label, lists["Ingress"] if label == "API" else [], user_managed, errors)
            if not lists[other]:
                errors.required(fields[other], lacking[label])


def _ipv4_first(section: Section, path: str, errors: FieldErrors) -> None:
    """Bring VIPs of two families into the order that Nutanix wants."""
    for field in ("apiVIPs", "ingressVIPs"):
        found = section.get(field) or []
        versions = [address.version for address in map(check.address, found) if address is not None]
        if len(versions) != len(found) or len({*versions}) < 2:
            continue
        if len(found) == 2:
            section[field] = sorted(found, key=version)
        else:
            errors.invalid(f"{path}.{field}", found, "wrong number of VIPs given. Expecting 2 VIPs for dual stack")


def _vip_list(
    config: InstallConfig,
    found: list[str],
    at: str,
    label: str,
    others: list[str],
    user_managed: bool,
    errors: FieldErrors,
) -> None:
    machine = [entry.get("cidr", "") for entry in config["networking"]["machineNetwork"]]
    nets = [net for net in map(check.network, machine) if net is not None]
    addresses = [check.address(vip) for vip in found]
    for vip, address in zip(found, addresses, strict=True):
        if address is None:
            errors.invalid(at, vip, f'"{vip}" is not a valid IP')
        # A user's own balancer may be outside, and serve both.
        if user_managed:
            continue
        if address is not None and address in map(check.address, others):
            errors.invalid(at, vip, "VIP for API must not be one of the Ingress VIPs")
        if not any(address is not None and address.version == net.version and address in net for net in nets):
            errors.invalid(at, vip, f"IP expected to be in one of the machine networks: {','.join(machine)}")
    networking = config["networking"]
    lists = {
        "clusterNetwork": [entry.get("cidr", "") for entry in networking["clusterNetwork"]],
        "machineNetwork": machine,
        "serviceNetwork": networking["serviceNetwork"],
    }
    versions = {name: [net.version for net in map(check.network, texts) if net] for name, texts in lists.items()}
    primary = 6 if addresses[0] is not None and addresses[0].version == 6 else 4
    if len({*versions["serviceNetwork"]}) == 2:
        for name, kinds in versions.items():
            if kinds and kinds[0] != primary:
                errors.invalid(
                    at, found[0], f"{name} primary IP Family and primary IP family for the {label} VIP should match"
                )
    if len(found) == 2 and len({address.version for address in addresses if address is not None}) < 2:
        errors.invalid(at, found, f"If two {label} VIPs are given, one must be an IPv4 address, the other an IPv6")
