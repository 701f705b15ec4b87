"""Fields and types of install-config.yaml and agent-config.yaml, and what the manifests share with them."""

from __future__ import annotations

from .schema import BOOL, INT, INT32, INT64, RAW, STR, UINT32, Map, Shape, Struct

OBJECT_META = Struct(
    "ObjectMeta",
    {
        "name": STR,
        "generateName": STR,
        "namespace": STR,
        "selfLink": STR,
        "uid": STR,
        "resourceVersion": STR,
        "generation": INT64,
        "creationTimestamp": RAW,
        "deletionTimestamp": RAW,
        "deletionGracePeriodSeconds": INT64,
        "labels": Map(STR),
        "annotations": Map(STR),
        "ownerReferences": RAW,
        "finalizers": [STR],
        "managedFields": RAW,
    },
    "v1",
)
TYPE_META: dict[str, Shape] = {"kind": STR, "apiVersion": STR, "metadata": OBJECT_META}
PROXY = Struct("Proxy", {"httpProxy": STR, "httpsProxy": STR, "noProxy": STR})
ROOT_DEVICE_HINTS = Struct(
    "RootDeviceHints",
    {
        "deviceName": STR,
        "hctl": STR,
        "model": STR,
        "vendor": STR,
        "serialNumber": STR,
        "minSizeGigabytes": INT,
        "wwn": STR,
        "wwnWithExtension": STR,
        "wwnVendorExtension": STR,
        "rotational": BOOL,
    },
    "baremetal",
)
BMC = Struct(
    "BMC", {"username": STR, "password": STR, "address": STR, "disableCertificateVerification": BOOL}, "baremetal"
)
INTERFACE = Struct("Interface", {"name": STR, "macAddress": STR}, "v1beta1")
AGENT_HOST = Struct(
    "Host",
    {
        "hostname": STR,
        "interfaces": [INTERFACE],
        "role": STR,
        "rootDeviceHints": ROOT_DEVICE_HINTS,
        "networkConfig": RAW,
        "BMC": BMC,
    },
    "agent",
)
AGENT_CONFIG = Struct(
    "Config",
    {
        **TYPE_META,
        "additionalNTPSources": [STR],
        "rendezvousIP": STR,
        "bootArtifactsBaseURL": STR,
        "minimalISO": BOOL,
        "hosts": [AGENT_HOST],
    },
    "agent",
)
FENCING = Struct(
    "Fencing",
    {
        "credentials": [
            Struct(
                "Credential",
                {
                    "hostName": STR,
                    "macAddress": STR,
                    "username": STR,
                    "password": STR,
                    "address": STR,
                    "certificateVerification": STR,
                },
            )
        ]
    },
)
_POOL = Struct(
    "MachinePool",
    {
        "name": STR,
        "replicas": INT64,
        "platform": RAW,
        "hyperthreading": STR,
        "architecture": STR,
        "diskSetup": RAW,
        "fencing": FENCING,
        "management": RAW,
    },
)
_LOAD_BALANCER = Struct("LoadBalancer", {"type": STR})
_BAREMETAL = Struct(
    "Platform",
    {
        "libvirtURI": STR,
        "clusterProvisioningIP": STR,
        "provisioningHostIP": STR,
        "bootstrapProvisioningIP": STR,
        "externalBridge": STR,
        "externalMACAddress": STR,
        "provisioningNetwork": STR,
        "provisioningBridge": STR,
        "provisioningMACAddress": STR,
        "provisioningNetworkInterface": STR,
        "provisioningNetworkCIDR": STR,
        "provisioningDHCPExternal": BOOL,
        "provisioningDHCPRange": STR,
        "provisioningNetworkGateway": STR,
        "hosts": [
            Struct(
                "Host",
                {
                    "name": STR,
                    "bmc": BMC,
                    "role": STR,
                    "bootMACAddress": STR,
                    "hardwareProfile": STR,
                    "rootDeviceHints": ROOT_DEVICE_HINTS,
                    "bootMode": STR,
                    "networkConfig": RAW,
                },
                "baremetal",
            )
        ],
        "defaultMachinePlatform": RAW,
        "apiVIP": STR,
        "apiVIPs": [STR],
        "ingressVIP": STR,
        "ingressVIPs": [STR],
        "bootstrapOSImage": STR,
        "clusterOSImage": STR,
        "bootstrapExternalStaticIP": STR,
        "bootstrapExternalStaticGateway": STR,
        "bootstrapExternalStaticDNS": STR,
        "loadBalancer": _LOAD_BALANCER,
        "additionalNTPServers": [STR],
        "dnsRecordsType": STR,
    },
    "baremetal",
)
_VSPHERE = Struct(
    "Platform",
    {
        "vCenter": STR,
        "username": STR,
        "password": STR,
        "datacenter": STR,
        "defaultDatastore": STR,
        "folder": STR,
        "clusterOSImage": STR,
        "apiVIP": STR,
        "apiVIPs": [STR],
        "ingressVIP": STR,
        "ingressVIPs": [STR],
        "defaultMachinePlatform": RAW,
        "cluster": STR,
        "resourcePool": STR,
        "network": STR,
        "diskType": STR,
        "vcenters": [
            Struct(
                "VCenter",
                {"server": STR, "port": INT32, "user": STR, "password": STR, "datacenters": [STR]},
                "vsphere",
            )
        ],
        "failureDomains": [
            Struct(
                "FailureDomain",
                {
                    "name": STR,
                    "region": STR,
                    "zone": STR,
                    "server": STR,
                    "zoneType": STR,
                    "regionType": STR,
                    "hostGroup": STR,
                    "topology": Struct(
                        "Topology",
                        {
                            "datacenter": STR,
                            "computeCluster": STR,
                            "networks": [STR],
                            "datastore": STR,
                            "resourcePool": STR,
                            "folder": STR,
                            "template": STR,
                            "tagIDs": [STR],
                            "hostGroup": STR,
                        },
                        "vsphere",
                    ),
                },
                "vsphere",
            )
        ],
        "nodeNetworking": RAW,
        "loadBalancer": _LOAD_BALANCER,
        "hosts": RAW,
        "dnsRecordsType": STR,
    },
    "vsphere",
)
_ENDPOINT = Struct("PrismEndpoint", {"address": STR, "port": INT32}, "nutanix")
_NUTANIX = Struct(
    "Platform",
    {
        "clusterOSImage": STR,
        "preloadedOSImageName": STR,
        "prismCentral": Struct("PrismCentral", {"endpoint": _ENDPOINT, "username": STR, "password": STR}, "nutanix"),
        "prismElements": [Struct("PrismElement", {"uuid": STR, "endpoint": _ENDPOINT, "name": STR}, "nutanix")],
        "apiVIP": STR,
        "apiVIPs": [STR],
        "ingressVIP": STR,
        "ingressVIPs": [STR],
        "subnetUUIDs": [STR],
        "defaultMachinePlatform": RAW,
        "loadBalancer": _LOAD_BALANCER,
        "failureDomains": RAW,
        "prismAPICallTimeout": INT,
        "dnsRecordsType": STR,
    },
    "nutanix",
)
EXTERNAL = Struct("Platform", {"platformName": STR, "cloudControllerManager": STR}, "external")
_SOURCES = [Struct("ImageSource", {"source": STR, "mirrors": [STR], "sourcePolicy": STR})]
INSTALL_CONFIG = Struct(
    "InstallConfig",
    {
        **TYPE_META,
        "additionalTrustBundle": STR,
        "additionalTrustBundlePolicy": STR,
        "sshKey": STR,
        "baseDomain": STR,
        "networking": Struct(
            "Networking",
            {
                "networkType": STR,
                "machineNetwork": [Struct("MachineNetworkEntry", {"cidr": STR})],
                "clusterNetwork": [
                    Struct("ClusterNetworkEntry", {"cidr": STR, "hostPrefix": INT32, "hostSubnetLength": INT32})
                ],
                "serviceNetwork": [STR],
                "clusterNetworkMTU": UINT32,
                "ovnKubernetesConfig": Struct(
                    "OVNKubernetesConfig", {"ipv4": Struct("IPv4OVNKubernetesConfig", {"internalJoinSubnet": STR})}
                ),
                "machineCIDR": STR,
                "type": STR,
                "serviceCIDR": STR,
                "clusterNetworks": [
                    Struct("ClusterNetworkEntry", {"cidr": STR, "hostPrefix": INT32, "hostSubnetLength": INT32})
                ],
            },
        ),
        "controlPlane": _POOL,
        "arbiter": _POOL,
        "compute": [_POOL],
        "platform": Struct(
            "Platform",
            {
                "aws": RAW,
                "azure": RAW,
                "baremetal": _BAREMETAL,
                "external": EXTERNAL,
                "gcp": RAW,
                "ibmcloud": RAW,
                "none": RAW,
                "openstack": RAW,
                "ovirt": RAW,
                "powervs": RAW,
                "vsphere": _VSPHERE,
                "nutanix": _NUTANIX,
                "libvirt": RAW,
                "alibabacloud": RAW,
            },
        ),
        "pullSecret": STR,
        "proxy": PROXY,
        "imageContentSources": _SOURCES,
        "imageDigestSources": _SOURCES,
        "publish": STR,
        "fips": BOOL,
        "cpuPartitioningMode": STR,
        "credentialsMode": STR,
        "bootstrapInPlace": Struct("BootstrapInPlace", {"installationDisk": STR}),
        "capabilities": Struct("Capabilities", {"baselineCapabilitySet": STR, "additionalEnabledCapabilities": [STR]}),
        "featureSet": STR,
        "featureGates": [STR],
        "operatorPublishingStrategy": RAW,
        "osImageStream": STR,
    },
    "types",
)
