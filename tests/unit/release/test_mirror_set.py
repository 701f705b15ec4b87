"""Files of mirrors that oc-mirror v2 and `agentlab mirror` write."""

from __future__ import annotations

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.release import mirror, mirror_set

# As oc-mirror v2 writes it: a document for the release, one for operators.
WRITTEN = """\
---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata:
  name: idms-release-0
spec:
  imageDigestMirrors:
  - mirrors:
    - registry.example.com:5000/openshift/release
    source: quay.io/openshift-release-dev/ocp-v4.0-art-dev
  - mirrors:
    - registry.example.com:5000/openshift/release-images
    source: quay.io/openshift-release-dev/ocp-release
status: {}
---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata:
  name: idms-operator-0
spec:
  imageDigestMirrors:
  - mirrorSourcePolicy: NeverContactSource
    mirrors:
    - registry.example.com:5000/redhat
    source: registry.redhat.io/redhat
  - mirrors:
    - second.example.com/openshift/release
    source: quay.io/openshift-release-dev/ocp-v4.0-art-dev
status: {}
"""


def test_all_documents_are_read_and_a_source_has_all_its_mirrors() -> None:
    found = mirror_set.read(WRITTEN, "idms-oc-mirror.yaml")
    assert found == [
        {
            "source": "quay.io/openshift-release-dev/ocp-v4.0-art-dev",
            "mirrors": ["registry.example.com:5000/openshift/release", "second.example.com/openshift/release"],
        },
        {
            "source": "quay.io/openshift-release-dev/ocp-release",
            "mirrors": ["registry.example.com:5000/openshift/release-images"],
        },
        {
            "source": "registry.redhat.io/redhat",
            "mirrors": ["registry.example.com:5000/redhat"],
            "sourcePolicy": "NeverContactSource",
        },
    ]
    again = mirror_set.resource(found)["spec"]["imageDigestMirrors"]
    assert again[2]["mirrorSourcePolicy"] == "NeverContactSource" and "sourcePolicy" not in again[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is not YAML: line "),
        ("kind: ImageTagMirrorSet\n", "'ImageTagMirrorSet': must be ImageDigestMirrorSet; use idms-oc-mirror.yaml"),
        ("[]", "has a document of the kind None: must be ImageDigestMirrorSet"),
        ("kind: ImageDigestMirrorSet\n", "lacks spec.imageDigestMirrors, a list"),
        ("kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: []}\n", "has no mirrors"),
        ("", "has no mirrors"),
        ("kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{mirrors: [a]}]}\n", r"\[0\].source is None"),
        ("kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: a, mirrors: b}]}\n", "mirrors is 'b'"),
        (
            "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: a, mirrors: [b], mirrorSourcePolicy: x}]}\n",
            "mirrorSourcePolicy is 'x': must be AllowContactingSource or NeverContactSource",
        ),
    ],
)
def test_what_is_wrong_with_a_file(text: str, message: str) -> None:
    with pytest.raises(mirror_set.MirrorSetError, match=message):
        mirror_set.read(text, "file")


@pytest.mark.parametrize(
    ("given", "arch", "pullspec"),
    [
        ("4.18.3", "amd64", "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64"),
        ("4.19.0-rc.1", "arm64", "quay.io/openshift-release-dev/ocp-release:4.19.0-rc.1-aarch64"),
        ("4.20.0-okd-scos.13", "amd64", "quay.io/okd/scos-release:4.20.0-okd-scos.13"),
        ("4.22.0-okd-scos.ec.16", "arm64", "quay.io/okd/scos-release:4.22.0-okd-scos.ec.16"),
        (
            "4.14.0-0.okd-scos-2024-01-30-032525",
            "amd64",
            "quay.io/okd/scos-release:4.14.0-0.okd-scos-2024-01-30-032525",
        ),
        ("4.15.0-0.okd-2024-03-10-010116", "amd64", "quay.io/openshift/okd:4.15.0-0.okd-2024-03-10-010116"),
        ("host/release:4.18.3", "amd64", "host/release:4.18.3"),
        ("4.20.0-okd-", "amd64", "4.20.0-okd-"),
    ],
)
def test_a_version_names_the_public_release(given: str, arch: str, pullspec: str) -> None:
    assert mirror.release_pullspec(given, arch) == pullspec
