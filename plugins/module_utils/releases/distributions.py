"""What differs between the distributions of OpenShift, as data: a row each.

Sources for OKD: the README of okd-project/okd (its pull secret), the releases of okd-project/okd-scos (versions and
pullspecs), and what openshift/installer builds with the tag `scos` (feature set, a single stream of the OS).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..vocabulary import rpm_arch

_OKD = re.compile(r"\d+\.\d+\.\d+-(0\.)?okd-", re.ASCII)
PUBLIC_REGISTRY = "quay.io"
"""The registry whose images the assisted service pulls without an entry in the pull secret, unless there are mirrors."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """One distribution of OpenShift.

    payload: its name in profiles; title: in messages; images: form of a version -> pullspec of its public release image.
    """

    payload: str
    title: str
    images: Mapping[str, str]
    pull_secret: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None
    """The pull secret of those who have none: the installer requires one, public registries do not. None: there must be one."""
    feature_sets: tuple[str, ...] = ()
    """Feature sets that no other distribution has."""
    os_streams: Mapping[str, str] = field(default_factory=dict)
    """OS image stream -> beginning of its files' names in the payload's OS images; empty: there is one stream, without a name."""

    def image(self, version: str, arch: str = "amd64") -> str | None:
        """The pullspec of the public release image of a version; None for a text that is not a version of this distribution.

        arch: Go's name or RPM's.
        """
        for form, place in self.images.items():
            if re.fullmatch(form, version, re.ASCII):
                return place.format(version=version, arch=rpm_arch(arch))
        return None


DISTRIBUTIONS: Mapping[str, Distribution] = MappingProxyType(
    {
        row.payload: row
        for row in (
            Distribution(
                payload="ocp",
                title="OpenShift Container Platform",
                images={
                    r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?": "quay.io/openshift-release-dev/ocp-release:{version}-{arch}",
                },
                os_streams={"rhel-9": "coreos", "rhel-10": "coreos10"},
            ),
            Distribution(
                payload="okd",
                title="OKD",
                images={
                    r"\d+\.\d+\.\d+-(0\.)?okd-scos[.-][0-9A-Za-z.-]+": "quay.io/okd/scos-release:{version}",
                    # On Fedora CoreOS, until 4.15.
                    r"\d+\.\d+\.\d+-0\.okd-\d[0-9-]+": "quay.io/openshift/okd:{version}",
                },
                pull_secret={"auths": {"fake": {"auth": "aWQ6cGFzcwo="}}},
                feature_sets=("OKD",),
            ),
        )
    }
)
"""All distributions, by their names in profiles."""


def of_version(text: str) -> Distribution:
    """The distribution that a version belongs to: OKD if it is one of OKD's, else OpenShift Container Platform.

    text: a version such as `4.20.0-okd-scos.13`, or what has one in it, such as a pullspec with a tag.
    """
    return DISTRIBUTIONS["okd" if _OKD.search(text) else "ocp"]


def public_image(version: str, arch: str = "amd64") -> str | None:
    """The pullspec of the public release image of a version of any distribution; None for a text that is not a version."""
    return of_version(version).image(version, arch)
