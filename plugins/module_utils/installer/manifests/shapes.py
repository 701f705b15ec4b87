"""Fields and types of the ZTP manifests."""

from __future__ import annotations

from ..schema import BOOL, INT, INT32, RAW, STR, Map, Struct
from ..shapes import EXTERNAL, INTERFACE, PROXY, TYPE_META

REFERENCE = Struct("LocalObjectReference", {"name": STR}, "v1")
NAMESPACED = Struct("ClusterReference", {"name": STR, "namespace": STR}, "v1beta1")
SELECTOR = Struct("LabelSelector", {"matchLabels": Map(STR), "matchExpressions": RAW}, "v1")
AGENT_CLUSTER_INSTALL = Struct(
    "AgentClusterInstall",
    {
        **TYPE_META,
        "spec": Struct(
            "AgentClusterInstallSpec",
            {
                "sshPublicKey": STR,
                "imageSetRef": REFERENCE,
                "clusterDeploymentRef": REFERENCE,
                "clusterMetadata": RAW,
                "manifestsConfigMapRef": REFERENCE,
                "manifestsConfigMapRefs": [REFERENCE],
                "networking": Struct(
                    "Networking",
                    {
                        "machineNetwork": [Struct("MachineNetworkEntry", {"cidr": STR})],
                        "clusterNetwork": [Struct("ClusterNetworkEntry", {"cidr": STR, "hostPrefix": INT32})],
                        "serviceNetwork": [STR],
                        "networkType": STR,
                        "userManagedNetworking": BOOL,
                    },
                ),
                "provisionRequirements": Struct(
                    "ProvisionRequirements",
                    {"controlPlaneAgents": INT, "arbiterAgents": INT, "workerAgents": INT},
                    "v1beta1",
                ),
                "controlPlane": RAW,
                "arbiter": RAW,
                "compute": RAW,
                "apiVIP": STR,
                "apiVIPs": [STR],
                "ingressVIP": STR,
                "ingressVIPs": [STR],
                "holdInstallation": BOOL,
                "ignitionEndpoint": RAW,
                "diskEncryption": Struct(
                    "DiskEncryption", {"enableOn": STR, "mode": STR, "tangServers": STR}, "v1beta1"
                ),
                "proxy": PROXY,
                "platformType": STR,
                "external": EXTERNAL,
                "mastersSchedulable": BOOL,
                "loadBalancer": RAW,
            },
            "v1beta1",
        ),
        "status": RAW,
    },
    "v1beta1",
)
CLUSTER_DEPLOYMENT = Struct(
    "ClusterDeployment",
    {
        **TYPE_META,
        "spec": Struct(
            "ClusterDeploymentSpec",
            {
                "clusterName": STR,
                "baseDomain": STR,
                "platform": RAW,
                "pullSecretRef": REFERENCE,
                "preserveOnDelete": BOOL,
                "controlPlaneConfig": RAW,
                "ingress": RAW,
                "certificateBundles": RAW,
                "manageDNS": BOOL,
                "clusterMetadata": RAW,
                "installed": BOOL,
                "provisioning": RAW,
                "clusterInstallRef": RAW,
                "clusterPoolRef": RAW,
                "hibernateAfter": RAW,
                "powerState": STR,
                "installAttemptsLimit": INT32,
                "boundServiceAccountSigningKeySecretRef": RAW,
            },
            "v1",
        ),
        "status": RAW,
    },
    "v1",
)
CLUSTER_IMAGE_SET = Struct(
    "ClusterImageSet",
    {**TYPE_META, "spec": Struct("ClusterImageSetSpec", {"releaseImage": STR}, "v1"), "status": RAW},
    "v1",
)
INFRA_ENV = Struct(
    "InfraEnv",
    {
        **TYPE_META,
        "spec": Struct(
            "InfraEnvSpec",
            {
                "proxy": PROXY,
                "additionalNTPSources": [STR],
                "sshAuthorizedKey": STR,
                "pullSecretRef": REFERENCE,
                "agentLabels": Map(STR),
                "nmStateConfigLabelSelector": SELECTOR,
                "clusterRef": NAMESPACED,
                "kernelArguments": RAW,
                "ignitionConfigOverride": STR,
                "cpuArchitecture": STR,
                "ipxeScriptType": STR,
                "osImageVersion": STR,
                "additionalTrustBundle": STR,
                "imageType": STR,
            },
            "v1beta1",
        ),
        "status": RAW,
    },
    "v1beta1",
)
SECRET = Struct(
    "Secret",
    {**TYPE_META, "data": Map(STR), "stringData": Map(STR), "type": STR, "immutable": BOOL},
    "v1",
)
NMSTATE_CONFIG = Struct(
    "NMStateConfig",
    {
        **TYPE_META,
        "spec": Struct("NMStateConfigSpec", {"interfaces": [INTERFACE], "config": RAW}, "v1beta1"),
        "status": RAW,
    },
    "v1beta1",
)
