"""Validations of what a host gets from others: time, images, names and the Ignition config of a cluster that it joins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import ClusterNames
from ..facts import domain, is_day2, is_sno, names_of
from .base import ERROR, FAILURE, HIDDEN, PENDING, SUCCESS, Category, Gate, Result, validation
from .view import HostCheck, HostView, address_list, before_reboot, dns_needed, reaches_api


@validation("ntp-synced", Category.NETWORK, gate=Gate.WARNING)
@before_reboot
def ntp_synced(v: HostView) -> Result:
    sources = load_json(v.host.get("ntp_sources") or "[]", name="ntp_sources")
    if any(source.get("source_state") == "synced" for source in sources):
        return SUCCESS, "Host NTP is synced"
    return FAILURE, "Host couldn't synchronize with any NTP server"


#: How far the service may be ahead of a host's clock, and the host of the service's, in seconds.
_SERVICE_AHEAD, _HOST_AHEAD = 1200, 3600


@validation("time-synced-between-host-and-service", Category.NETWORK)
@before_reboot
def time_synced(v: HostView) -> Result:
    """Validate that the clocks of host and service differ by less than 20 minutes (60 if the host's is ahead).

    `_clock` of the host is service time less host time in seconds, taken when it last sent its inventory. Hidden after
    the reboot, pending before the first report.
    """
    if "_clock" not in v.host:
        return PENDING, "Missing host time, can't determine synchronization between host and service"
    ahead = float(v.host["_clock"])
    if -_HOST_AHEAD <= ahead <= _SERVICE_AHEAD:
        return SUCCESS, "Host clock is synchronized with service"
    who, limit = (
        ("service time is ahead of host's", _SERVICE_AHEAD)
        if ahead > 0
        else ("host time is ahead of service", _HOST_AHEAD)
    )
    now = datetime.fromtimestamp(v.view.now, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    return FAILURE, (
        f"Host clock is not synchronized, {who} at least for {limit / 60:.1f} minutes, please configure an NTP server "
        f"via DHCP. Service time: {now}"
    )


def failed_images(v: HostView) -> list[str]:
    """Return the pullspecs that a host could not pull: a failure, or a rate of zero.

    From `images_status`, which the replies to `container-image-availability` fill. A pull that has not been reported is
    not a failure.
    """
    images = load_json(v.host.get("images_status") or "{}", name="images_status")
    return [
        name
        for name, image in sorted(images.items())
        if image.get("result") == "failure"
        or (image.get("size_bytes", 0) > 0 and image.get("download_rate", 0) < 0.001)
    ]


@validation("container-images-available", Category.NETWORK, gate=Gate.WARNING)
def images_available(v: HostView) -> Result:
    failed = failed_images(v)
    if not failed:
        return (
            SUCCESS,
            "All required container images were either pulled successfully or no attempt was made to pull them",
        )
    return FAILURE, (
        f"Failed to fetch container images needed for installation from {','.join(failed)}. This may be due to a "
        "network hiccup. Retry to install again. If this problem persists, check your network settings to make "
        "sure you\u2019re not blocked."
    )


def _own_domain(names: Callable[[ClusterNames], tuple[str, str]], what: str) -> HostCheck:
    """Check that the user's DNS resolves a name of the cluster, where the installation needs it.

    names: return the name that is resolved, and the one in messages.
    """

    def check(v: HostView) -> Result:
        name, shown_name = names(names_of(v.cluster))
        good = (SUCCESS, f"Domain name resolution for the {shown_name} domain was successful or not required")
        if v.cluster.get("imported") and not any(reaches_api(host) for host in v.view.hosts.values()):
            return PENDING, (
                f"DNS validation for the {shown_name} domain cannot be completed at the moment. This could be due to other validations"
            )
        if not dns_needed(v.cluster, v.view.dnsmasq):
            return good
        if not v.cluster.get("base_dns_domain"):
            return ERROR, (
                f"DNS validation for the {what} domain cannot be completed because the cluster does not have base_dns_domain "
                "set. Please update the cluster with the correct base_dns_domain"
            )
        if not v.host.get("domain_name_resolutions"):
            return ERROR, "Error while evaluating DNS resolution on this host"
        found = v.resolved(name)
        if not found:
            return FAILURE, (
                f"Couldn't resolve domain name {shown_name} on the host. To continue installation, create the necessary DNS "
                f"entries to resolve this domain name to your cluster's {what} IP address"
            )
        own = {text.partition("/")[0] for text in address_list(v.inventory or {})} & set(found)
        if own and not is_sno(v.cluster) and not is_day2(v.cluster):
            return FAILURE, (
                f"Domain {shown_name} must not point at {sorted(own)[0]} as it is the API address of this host. This domain must "
                "instead point at the IP address of a load balancer when using user managed networking in a multi "
                "control-plane node cluster"
            )
        return good

    return check


WILDCARD = "validateNoWildcardDNS"


@validation("dns-wildcard-not-configured", Category.NETWORK)
def no_wildcard(v: HostView) -> Result:
    """Validate that the cluster's domain has no DNS wildcard.

    `validateNoWildcardDNS.<cluster>.<domain>` must not resolve. It is asked with a final dot (a record of the zone) and
    without (the search domains of DHCP), each with a message of its own. `error` when the host's report lacks one of
    the two, not required on day 2.
    """
    if is_day2(v.cluster):
        return SUCCESS, "DNS wildcard check is not required for day2"
    if not v.host.get("domain_name_resolutions"):
        return (
            PENDING,
            "DNS wildcard check cannot be performed yet because the host has not yet performed DNS resolution",
        )
    name, cluster = f"{WILDCARD}.{domain(v.cluster)}", f"*.{domain(v.cluster)}"
    for applies, text in (
        (
            f"{name}.",
            f"DNS wildcard configuration was detected for domain {cluster} - the installation will not be able to complete "
            "while this record exists. Please remove it to proceed. The domain resolves to ",
        ),
        (
            name,
            f"Unexpected domain name resolution was detected for the relative domain name with the sub-domain {cluster} despite "
            "the fact that no resolution exists for a Fully Qualified Domain Name (FQDN) with same sub-domain. This is usually a "
            "sign of DHCP-provided domain-search configuration. The installation will not be able to complete with this "
            "configuration in place. Please remove it to proceed. The relative domain name resolves to ",
        ),
    ):
        found = v.resolved(applies)
        if found is None:
            return ERROR, (
                "Internal error - DNS wildcard check cannot be performed because the DNS validation result doesn't contain "
                "the wildcard domain"
            )
        if found:
            return FAILURE, text + ", ".join(found)
    return SUCCESS, "DNS wildcard check was successful"


@validation("ignition-downloadable", Category.NETWORK)
def ignition_downloadable(v: HostView) -> Result:
    """Validate that a host which joins an installed cluster gets the Ignition config of its machine config server.

    From the reply to `api-vip-connectivity-check`, whose URL and error the message quotes. Hidden on day 1.
    """
    if not is_day2(v.cluster):
        return HIDDEN, ""
    answer = load_json(v.host.get("api_vip_connectivity") or "{}", name="api_vip_connectivity")
    if not answer:
        return PENDING, "Ignition is not yet available, pending API connectivity"
    if answer.get("is_success"):
        return SUCCESS, "Ignition is downloadable"
    if not answer.get("url"):
        return FAILURE, (
            "This host has failed to download the ignition file from the cluster, please ensure the host can reach the cluster"
        )
    return FAILURE, (
        f"This host has failed to download the ignition file from {answer['url']} with the following error: "
        f"{answer.get('download_error', '')}. Please ensure the host can reach this URL"
    )


api_resolved = validation("api-domain-name-resolved-correctly", Category.NETWORK)(
    _own_domain(lambda names: (names.api, names.api), "API load balancer")
)
api_int_resolved = validation("api-int-domain-name-resolved-correctly", Category.NETWORK)(
    _own_domain(lambda names: (names.api_int, names.api_int), "internal API load balancer")
)
apps_resolved = validation("apps-domain-name-resolved-correctly", Category.NETWORK)(
    _own_domain(lambda names: (names.console, f"*.{names.apps}"), "application ingress")
)
