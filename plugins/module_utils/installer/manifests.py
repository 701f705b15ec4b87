"""The ZTP manifests of `cluster-manifests/`: made from install-config and agent-config, or read from disk."""

from __future__ import annotations

from typing import Any

from ..log import Log
from ..releases import ReleaseProfile
from . import check, gojson, shapes
from .errors import FieldErrors, InstallerError, quote
from .install_config import cidr, default_stream, machine_network_of, platform_name, replicas
from .platforms import has_credentials
from .schema import decode, decode_file
from .yamlio import dump, load_all

DIRECTORY = "cluster-manifests"
FENCING = "fencing-credentials.yaml"
OVERRIDES = "agent-install.openshift.io/install-config-overrides"
SELECTOR = "infraenvs.agent-install.openshift.io"
DEFAULT_NAME = "agent-cluster"
PLATFORMS = {
    "baremetal": "BareMetal", "vsphere": "VSphere", "nutanix": "Nutanix", "none": "None", "external": "External"
}  # fmt: skip
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}


def _meta(name: str, namespace: str, profile: ReleaseProfile, **extra: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, **extra}
    if namespace:
        meta["namespace"] = namespace
    if profile.creation_timestamp:
        meta["creationTimestamp"] = None
    return meta


def names(install_config: dict[str, Any] | None) -> tuple[str, str]:
    """Cluster name and namespace."""
    meta = (install_config or {}).get("metadata", {})
    return meta.get("name") or DEFAULT_NAME, meta.get("namespace", "")


def proxy_of(
    install_config: dict[str, Any], agent_config: dict[str, Any] | None, profile: ReleaseProfile
) -> dict[str, str]:
    """The proxy settings; noProxy gets the machine network of the rendezvous IP."""
    proxy = {key: value for key, value in (install_config.get("proxy") or {}).items() if value}
    ip = (agent_config or {}).get("rendezvousIP", "")
    if profile.no_proxy_machine_network and ip and (proxy.get("httpProxy") or proxy.get("httpsProxy")):
        net = machine_network_of(install_config, ip)
        if net and net not in proxy.get("noProxy", ""):
            proxy["noProxy"] = ",".join(part for part in (proxy.get("noProxy", ""), net) if part)
    return proxy


# --- pull secret ------------------------------------------------------------------


def check_pull_secret(text: str) -> str | None:
    """Return why `text` is not a pull secret, or None."""
    try:
        secret = gojson.loads(text)
    except gojson.JsonError as error:
        return str(error)
    if not isinstance(secret, dict | None):
        return f"json: cannot unmarshal {gojson.kind(secret)} into Go value of type validate.imagePullSecret"
    auths = next((value for key, value in (secret or {}).items() if key.lower() == "auths"), None)
    into = "into Go struct field imagePullSecret.auths of type map[string]"
    if not isinstance(auths, dict | None):
        return f"json: cannot unmarshal {gojson.kind(auths)} {into}map[string]interface {{}}"
    wrong = next((entry for entry in (auths or {}).values() if not isinstance(entry, dict | None)), None)
    if wrong is not None:
        return f"json: cannot unmarshal {gojson.kind(wrong)} {into}interface {{}}"
    if not auths:
        return "auths required"
    bad = [
        f"{quote(host)} requires either auth or credsStore"
        for host, entry in auths.items()
        if not {"auth", "credsStore"} & (entry or {}).keys()
    ]
    return bad[0] if len(bad) == 1 else f"[{', '.join(bad)}]" if bad else None


def _normal(text: str) -> str:
    """A pull secret in the form in which it can be found, and hidden, in other files."""
    return gojson.dumps(gojson.loads(text), indent=True)


def pull_secret(install_config: dict[str, Any], profile: ReleaseProfile) -> dict[str, Any]:
    """The Secret that holds the pull secret, in normal form."""
    cluster, namespace = names(install_config)
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": _meta(f"{cluster}-pull-secret", namespace, profile),
        "stringData": {".dockerconfigjson": _normal(install_config["pullSecret"])},
    }  # fmt: skip


def load_pull_secret(text: str, profile: ReleaseProfile) -> dict[str, Any]:
    """Read pull-secret.yaml; only stringData counts, and its JSON comes out in normal form."""
    secret: dict[str, Any] = decode_file(text, f"{DIRECTORY}/pull-secret.yaml", shapes.SECRET)
    errors = FieldErrors()
    data = secret.get("stringData") or {}
    if not data:
        errors.required("stringData", "the pull secret is empty")
    elif ".dockerconfigjson" not in data:
        errors.required("stringData", "the pull secret key '.dockerconfigjson' is not defined")
    elif not data[".dockerconfigjson"]:
        errors.required("stringData", "the pull secret does not contain any data")
    else:
        why = check_pull_secret(data[".dockerconfigjson"])
        if why:
            errors.invalid("stringData", "<hidden>", why)
    errors.check("invalid PullSecret configuration")
    data[".dockerconfigjson"] = _normal(data[".dockerconfigjson"])
    if profile.creation_timestamp:
        secret.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    return secret


# --- AgentClusterInstall ------------------------------------------------------------

_ACI_STATUS = {"debugInfo": {"eventsURL": "", "logsURL": ""}, "progress": {"totalPercentage": 0}}


def agent_cluster_install(
    config: dict[str, Any],
    agent_config: dict[str, Any] | None,
    hosts: list[dict[str, Any]],
    version: str,
    profile: ReleaseProfile,
) -> dict[str, Any]:
    """The AgentClusterInstall of an install-config with defaults filled in."""
    cluster, namespace = names(config)
    platform = platform_name(config)
    section = config["platform"][platform] or {}
    networking = config["networking"]
    counts = replicas(config)
    requirements = {"controlPlaneAgents": counts["master"]}
    if profile.arbiter and counts["arbiter"]:
        requirements["arbiterAgents"] = counts["arbiter"]
    if counts["worker"]:
        requirements["workerAgents"] = counts["worker"]
    known_network = networking["networkType"] in ("OVNKubernetes", "OpenShiftSDN")
    spec: dict[str, Any] = {
        "imageSetRef": {"name": f"openshift-{version}"},
        "clusterDeploymentRef": {"name": cluster},
        "networking": {
            "machineNetwork": [{"cidr": cidr(entry["cidr"])} for entry in networking["machineNetwork"]],
            "clusterNetwork": [
                {"cidr": cidr(entry["cidr"]), "hostPrefix": entry["hostPrefix"]}
                for entry in networking["clusterNetwork"]
            ],
            "serviceNetwork": [cidr(net) for net in networking["serviceNetwork"]],
            "networkType": networking["networkType"] if known_network else "OVNKubernetes",
            "userManagedNetworking": platform in ("none", "external"),
        },
        "sshPublicKey": config.get("sshKey", "").strip("|\n\t"),
        "provisionRequirements": requirements,
        "platformType": PLATFORMS[platform],
    }
    if not spec["sshPublicKey"]:
        del spec["sshPublicKey"]
    if platform == "external":
        spec["external"] = {"platformName": section["platformName"]} if section.get("platformName") else {}
        if section.get("platformName") == "oci":
            spec["external"]["cloudControllerManager"] = "External"
    if platform in ("baremetal", "vsphere", "nutanix"):
        spec["apiVIPs"], spec["ingressVIPs"] = section.get("apiVIPs", []), section.get("ingressVIPs", [])
        if platform == "baremetal" and spec["apiVIPs"] and spec["ingressVIPs"]:
            spec["apiVIP"], spec["ingressVIP"] = spec["apiVIPs"][0], spec["ingressVIPs"][0]
        balancer = (section.get("loadBalancer") or {}).get("type")
        if platform == "baremetal" and profile.load_balancer and balancer == "UserManaged":
            spec["loadBalancer"] = {"type": "UserManaged"}
    proxy = proxy_of(config, agent_config, profile)
    if proxy:
        spec["proxy"] = proxy
    overrides = install_config_overrides(config, hosts, version, profile)
    extra = {}
    if overrides:
        extra["annotations"] = {OVERRIDES: gojson.dumps(overrides)}
    return {
        "apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall",
        "metadata": _meta(cluster, namespace, profile, **extra), "spec": spec, "status": _ACI_STATUS,
    }  # fmt: skip


def install_config_overrides(
    config: dict[str, Any], hosts: list[dict[str, Any]], version: str, profile: ReleaseProfile
) -> dict[str, Any]:
    """What the assisted service doesn't model and so travels as an annotation; {} when there is none."""
    found: dict[str, Any] = {}
    if config.get("fips"):
        found["fips"] = True
    gates = {name: config[name] for name in ("featureSet", "featureGates") if config.get(name)}
    if not profile.feature_sets:
        gates = {}
    platform = platform_name(config)
    part = _PLATFORM_OVERRIDES.get(platform, lambda *__: {})(config["platform"][platform] or {}, hosts, profile)
    # Upstream writes vSphere's part, empty or not, when anything before it is overridden.
    if part or platform in ("external", "nutanix") or (platform == "vsphere" and (found or gates)):
        found["platform"] = {platform: part}
    if config.get("capabilities") is not None:
        found["capabilities"] = config["capabilities"]
    if config["networking"]["networkType"] not in ("OVNKubernetes", "OpenShiftSDN"):
        found["networking"] = config["networking"]
    if config.get("cpuPartitioningMode"):
        found["cpuPartitioningMode"] = config["cpuPartitioningMode"]
    if config.get("additionalTrustBundlePolicy", "Proxyonly") not in ("", "Proxyonly"):
        found["additionalTrustBundlePolicy"] = config["additionalTrustBundlePolicy"]
    found |= gates
    if config.get("osImageStream") and config["osImageStream"] != default_stream(version):
        found["osImageStream"] = config["osImageStream"]
    return found


def _baremetal_overrides(
    section: dict[str, Any], hosts: list[dict[str, Any]], profile: ReleaseProfile
) -> dict[str, Any]:
    entries = []
    for host in hosts:
        bmc = host.get("BMC") or {}
        if not any(bmc.get(key) for key in ("username", "password", "address")):
            continue
        entry = {
            "name": host.get("hostname", ""),
            "bmc": {
                **{key: bmc.get(key, "") for key in ("username", "password", "address")},
                "disableCertificateVerification": bmc.get("disableCertificateVerification", False),
            },
            "role": host.get("role", ""),
            "bootMACAddress": host["interfaces"][0]["macAddress"],
            "hardwareProfile": "",
        }
        entries.append(entry)
    if not entries:
        return {}
    fields = ["clusterProvisioningIP", "provisioningNetwork", "provisioningNetworkInterface",
              "provisioningNetworkCIDR", "provisioningDHCPRange"]  # fmt: skip
    if profile.provisioning_network_gateway:
        fields.append("provisioningNetworkGateway")
    return {"hosts": entries, **{name: section[name] for name in fields if section.get(name)}}


def _vsphere_overrides(section: dict[str, Any], _hosts: list[Any], _profile: ReleaseProfile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if len(section.get("apiVIPs", [])) > 1:
        found["apiVIPs"] = section["apiVIPs"]
        found["ingressVIPs"] = section.get("ingressVIPs", [])
    centers = [center for center in section.get("vcenters", []) if has_credentials(center)]
    if centers:
        found["vcenters"] = centers
        if section.get("failureDomains"):
            found["failureDomains"] = section["failureDomains"]
    return found


_NUTANIX_DROPPED = ("clusterOSImage", "preloadedOSImageName", "defaultMachinePlatform", "loadBalancer",
                    "failureDomains", "prismAPICallTimeout")  # fmt: skip


def _nutanix_overrides(section: dict[str, Any], _hosts: list[Any], profile: ReleaseProfile) -> dict[str, Any]:
    found = {key: value for key, value in section.items() if key not in _NUTANIX_DROPPED}
    if not profile.nutanix_dns_records_type:
        found.pop("dnsRecordsType", None)
    return found


def _external_overrides(section: dict[str, Any], _hosts: list[Any], _profile: ReleaseProfile) -> dict[str, Any]:
    return {key: section[key] for key in ("platformName", "cloudControllerManager") if section.get(key)}


_PLATFORM_OVERRIDES: dict[str, Any] = {
    "baremetal": _baremetal_overrides,
    "vsphere": _vsphere_overrides,
    "nutanix": _nutanix_overrides,
    "external": _external_overrides,
}


def load_agent_cluster_install(text: str, profile: ReleaseProfile, log: Log) -> tuple[dict[str, Any], str]:
    """Read agent-cluster-install.yaml; returns the manifest with defaults, and the text to put into the image."""
    name = f"{DIRECTORY}/agent-cluster-install.yaml"
    aci: dict[str, Any] = decode_file(text, name, shapes.AGENT_CLUSTER_INSTALL)
    spec = aci.setdefault("spec", {})
    spec["platformType"] = PLATFORMS.get(spec.get("platformType", ""), spec.get("platformType", ""))
    networking = spec.setdefault("networking", {})
    if not networking.get("networkType"):
        log.info("NetworkType is not specified in AgentClusterInstall. Defaulting NetworkType to OVNKubernetes.")
        networking["networkType"] = "OVNKubernetes"
    networking.setdefault("userManagedNetworking", spec["platformType"] in ("None", "External"))
    # What Go's zero values print.
    if not spec["platformType"]:
        del spec["platformType"]
    spec.setdefault("clusterDeploymentRef", {})
    spec.setdefault("provisionRequirements", {})
    if profile.creation_timestamp:
        aci.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    status = aci.get("status")
    aci["status"] = {**_ACI_STATUS, **(status if isinstance(status, dict) else {})}
    return aci, dump(aci)


def check_agent_cluster_install(aci: dict[str, Any], profile: ReleaseProfile) -> None:
    """Raise `InstallerError` when the manifest, from wherever, contradicts itself."""
    spec = aci.get("spec", {})
    networking = spec.get("networking", {})
    errors = FieldErrors()
    at = "spec.networking"
    if networking.get("networkType") == "OpenShiftSDN":
        for kind, nets in (
            ("clusterNetwork", [entry.get("cidr", "") for entry in networking.get("clusterNetwork", [])]),
            ("serviceNetwork", networking.get("serviceNetwork", [])),
        ):
            found = [check.network(net) for net in nets]
            if None in found:
                errors.required(f"{at}.{kind}", "error parsing the clusterNetwork CIDR")
            if any(net is not None and net.version == 6 for net in found):
                errors.required(
                    f"{at}.networkType", f"{kind} CIDR is IPv6 and is not compatible with networkType OpenShiftSDN"
                )
    elif profile.ovn_checks and networking.get("networkType") == "OVNKubernetes":
        needs = spec.get("provisionRequirements", {})
        hosts = needs.get("controlPlaneAgents", 0) + needs.get("workerAgents", 0)
        for index, entry in enumerate(networking.get("clusterNetwork", [])):
            net, prefix, path = (
                check.network(entry.get("cidr")),
                entry.get("hostPrefix", 0),
                f"{at}.clusterNetwork[{index}]",
            )
            if net is None:
                errors.required(f"{path}.cidr", "error parsing the clusterNetwork CIDR")
                continue
            if prefix > net.max_prefixlen - 7:
                errors.invalid(f"{path}.hostPrefix", prefix, f"must be at most {net.max_prefixlen - 7}")
            if prefix - net.prefixlen < (hosts - 1).bit_length() or prefix < net.prefixlen:
                errors.invalid(
                    path, entry["cidr"],
                    f"prefix length {net.prefixlen} not large enough to accommodate {hosts} hosts with hostPrefix "
                    f"length {prefix}",
                )  # fmt: skip
    errors.check("invalid NetworkType configured")
    platform = spec.get("platformType", "")
    if platform and platform not in PLATFORMS.values():
        errors.unsupported("spec.platformType", platform, PLATFORMS.values())
    if platform in ("None", "External") and networking.get("userManagedNetworking") is False:
        errors.forbidden(
            "spec.networking.userManagedNetworking", f"{platform} platform requires user-managed networking"
        )
    errors.check("invalid PlatformType configured")
    encryption = spec.get("diskEncryption")
    if profile.disk_encryption_check and encryption is not None:
        for field, allowed in (("enableOn", ("none", "all", "masters", "workers")), ("mode", ("tpmv2", "tang"))):
            if encryption.get(field, "") not in allowed:
                errors.unsupported(f"spec.diskEncryption.{field}", encryption.get(field, ""), allowed)
        errors.check("invalid DiskEncryption configured")


def overrides_of(aci: dict[str, Any] | None) -> dict[str, Any]:
    """The parsed overrides annotation; {} without one. Raises `InstallerError` when it is not a JSON object."""
    text = ((aci or {}).get("metadata", {}).get("annotations") or {}).get(OVERRIDES)
    if not text:
        return {}
    try:
        found = gojson.loads(text)
    except gojson.JsonError as error:
        raise InstallerError(f"{DIRECTORY}/agent-cluster-install.yaml: annotation {OVERRIDES}: {error}") from error
    return found if isinstance(found, dict) else {}


# --- the others ---------------------------------------------------------------------


def cluster_deployment(config: dict[str, Any], profile: ReleaseProfile) -> dict[str, Any]:
    """The ClusterDeployment."""
    cluster, namespace = names(config)
    return {
        "apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment",
        "metadata": _meta(cluster, namespace, profile),
        "spec": {
            "baseDomain": config.get("baseDomain", ""),
            "clusterInstallRef": {
                "group": "extensions.hive.openshift.io", "kind": "AgentClusterInstall", "name": cluster,
                "version": "v1beta1",
            },
            "clusterName": cluster,
            "controlPlaneConfig": {"servingCertificates": {}},
            "installed": False,
            "platform": {},
            "pullSecretRef": {"name": f"{cluster}-pull-secret"},
        },
        "status": {},
    }  # fmt: skip


def cluster_image_set(
    config: dict[str, Any] | None, release: str, version: str, profile: ReleaseProfile
) -> dict[str, Any]:
    """The ClusterImageSet of the installer's own release."""
    return {
        "apiVersion": "hive.openshift.io/v1", "kind": "ClusterImageSet",
        "metadata": _meta(f"openshift-{version}", names(config)[1], profile),
        "spec": {"releaseImage": release}, "status": {},
    }  # fmt: skip


def load_cluster_image_set(text: str, release: str) -> dict[str, Any]:
    """Read cluster-image-set.yaml; it must name the release that this image is for."""
    found: dict[str, Any] = decode_file(text, f"{DIRECTORY}/cluster-image-set.yaml", shapes.CLUSTER_IMAGE_SET)
    given = found.get("spec", {}).get("releaseImage", "")
    errors = FieldErrors()
    if given != release:
        errors.invalid("spec.releaseImage", given, f"value must be equal to {release}")
    errors.check("invalid ClusterImageSet configuration")
    return found


def infra_env(config: dict[str, Any], agent_config: dict[str, Any] | None, profile: ReleaseProfile) -> dict[str, Any]:
    """The InfraEnv of an install-config with defaults filled in."""
    cluster, namespace = names(config)
    spec: dict[str, Any] = {
        "clusterRef": {"name": cluster, "namespace": namespace},
        "cpuArchitecture": ARCHITECTURES.get(config["controlPlane"]["architecture"], ""),
        "pullSecretRef": {"name": f"{cluster}-pull-secret"},
        "nmStateConfigLabelSelector": {"matchLabels": {SELECTOR: cluster}},
    }
    if not namespace:
        del spec["clusterRef"]["namespace"]
    ssh = config.get("sshKey", "").strip("|\n\t")
    if ssh:
        spec["sshAuthorizedKey"] = ssh
    if config.get("additionalTrustBundle"):
        spec["additionalTrustBundle"] = config["additionalTrustBundle"]
    proxy = proxy_of(config, agent_config, profile)
    if proxy:
        spec["proxy"] = proxy
    sources = (agent_config or {}).get("additionalNTPSources")
    if sources is None:
        sources = (config["platform"].get("baremetal") or {}).get("additionalNTPServers")
    if sources:
        spec["additionalNTPSources"] = sources
    return complete_infra_env(
        {
            "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "InfraEnv",
            "metadata": _meta(cluster, namespace, profile), "spec": spec,
        },
        profile,
    )  # fmt: skip


def complete_infra_env(found: dict[str, Any], profile: ReleaseProfile) -> dict[str, Any]:
    """Add what Go's zero values print."""
    if profile.creation_timestamp:
        found.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    found.setdefault("spec", {}).setdefault("ipxeScriptType", "")
    found["spec"].setdefault("nmStateConfigLabelSelector", {})
    artifacts = dict.fromkeys(("initrd", "ipxeScript", "kernel", "rootfs"), "")
    if profile.discovery_ignition_url:
        artifacts["discoveryIgnitionURL"] = ""
    found.setdefault("status", {"agentLabelSelector": {}, "bootArtifacts": artifacts, "debugInfo": {"eventsURL": ""}})
    return found


def load_infra_env(text: str) -> dict[str, Any]:
    """Read infraenv.yaml; Go's architecture names become RPM's."""
    found: dict[str, Any] = decode_file(text, f"{DIRECTORY}/infraenv.yaml", shapes.INFRA_ENV)
    spec = found.setdefault("spec", {})
    arch = spec.get("cpuArchitecture", "")
    if arch:
        arch = ARCHITECTURES.get(arch, arch)
        if arch not in ARCHITECTURES.values():
            raise InstallerError(f"Config.Spec.CpuArchitecture {arch} is not supported ")
        spec["cpuArchitecture"] = arch
    return found


def nmstate_configs(
    config: dict[str, Any] | None, hosts: list[dict[str, Any]], profile: ReleaseProfile
) -> list[dict[str, Any]]:
    """One NMStateConfig for each host that has a networkConfig."""
    cluster, namespace = names(config)
    found = []
    for index, host in enumerate(hosts):
        if host.get("networkConfig") is None:
            continue
        meta = _meta(f"{cluster}-{index}", namespace, profile, labels={SELECTOR: cluster})
        found.append(
            {
                "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "NMStateConfig", "metadata": meta,
                "spec": {
                    "config": host["networkConfig"],
                    "interfaces": [
                        {"macAddress": nic.get("macAddress", ""), "name": nic.get("name", "")}
                        for nic in host["interfaces"]
                    ],
                },
            }
        )  # fmt: skip
    return found


def dump_nmstate_configs(configs: list[dict[str, Any]]) -> str:
    """nmstateconfig.yaml: every document is followed by a separator."""
    return "".join(dump(doc) + "---\n" for doc in configs)


def load_nmstate_configs(text: str) -> list[dict[str, Any]]:
    """Read the documents of nmstateconfig.yaml; unknown fields are let pass."""
    name = f"{DIRECTORY}/nmstateconfig.yaml"
    try:
        found = [
            decode(value, name, shapes.NMSTATE_CONFIG, position, strict=False)
            for value, position in load_all(text, name)
        ]
    except InstallerError as error:
        raise InstallerError(f"could not decode YAML for {name}: Error reading multiple YAMLs: {error}") from error
    errors = FieldErrors()
    for doc in found:
        if not doc.get("metadata", {}).get("labels"):
            errors.required("labels", f"{doc.get('metadata', {}).get('name', '')} does not have any label set")
    errors.check("invalid NMStateConfig configuration")
    return found


def check_labels(infra: dict[str, Any], configs: list[dict[str, Any]]) -> None:
    """Every NMStateConfig must carry the labels that the InfraEnv selects by."""
    selector = infra["spec"].get("nmStateConfigLabelSelector", {}).get("matchLabels") or {}
    errors = FieldErrors()

    def go_map(labels: dict[str, str]) -> str:
        return "map[" + " ".join(f"{key}:{labels[key]}" for key in sorted(labels)) + "]"

    for doc in configs:
        labels = doc["metadata"]["labels"]
        if labels != selector:
            errors.required(
                "spec.nmStateConfigLabelSelector.matchLabels",
                f"infraEnv and {doc['metadata'].get('name', '')} NMState Config labels do not match. "
                f"Expected: {go_map(selector)} Found: {go_map(labels)}",
            )
    errors.check("invalid agent configuration")


def load_cluster_deployment(text: str) -> dict[str, Any]:
    """Read cluster-deployment.yaml."""
    found: dict[str, Any] = decode_file(text, f"{DIRECTORY}/cluster-deployment.yaml", shapes.CLUSTER_DEPLOYMENT)
    return found


def load_fencing_credentials(text: str) -> dict[str, str]:
    """Return fencing-credentials.yaml as the user wrote it: it is for all hosts, and passed on unchanged."""
    decode_file(text, FENCING, shapes.FENCING)
    return {"": text}


def fencing_credentials(config: dict[str, Any], hosts: list[dict[str, Any]]) -> dict[str, str]:
    """fencing-credentials.yaml of two nodes with fencing, by the number of the host that it is for.

    Credentials for a MAC address are their host's; "" has those that name a host, which the service matches.
    """
    by_mac = {nic["macAddress"].lower(): str(number) for number, host in enumerate(hosts) for nic in host["interfaces"]}
    renamed = {"hostName": "hostname", "macAddress": "macaddress"}
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in (config["controlPlane"].get("fencing") or {}).get("credentials") or []:
        place = "" if entry.get("hostName") else by_mac.get(entry.get("macAddress", "").lower(), "")
        found.setdefault(place, []).append({renamed.get(key, key): value for key, value in entry.items() if value})
    return {place: dump({"credentials": entries}, sort=False) for place, entries in found.items()}
