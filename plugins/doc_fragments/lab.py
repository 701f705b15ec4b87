"""Common documentation of the lab modules."""

from __future__ import annotations


class ModuleDocFragment:
    """The plan."""

    DOCUMENTATION = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan).
    type: dict
    required: true
"""

    STANDALONE = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan). Needs O(owner).
    type: dict
  owner:
    description:
      - The caller's identity, C(agentlab_owner), which the role P(agentlab.ocp.plan#role) sets.
      - A cluster of another user or another run directory is refused.
    type: dict
  cluster:
    description:
      - Without O(plan), a name for all that belongs together; it is part of the machines' names. It belongs to the user of the task.
      - M(agentlab.ocp.lab_destroy) removes it.
    type: str
  state_dir:
    description: Without O(plan), where its disks and records are. C(/var/lib/agentlab/<cluster>) by default.
    type: path
"""

    OWNED = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan).
    type: dict
    required: true
  owner:
    description:
      - The caller's identity, C(agentlab_owner), which the role P(agentlab.ocp.plan#role) sets.
      - A cluster of another user or another run directory is refused.
    type: dict
    required: true
"""

    NETWORKS = r"""
options:
  networks:
    description: The networks. Needs O(cluster).
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Its name in libvirt.
          - 'It is the name of a bridge: at most 15 characters of letters, digits, ''_'', ''.'' and ''-''.'
        type: str
        required: true
      subnets:
        description: Its addresses, one entry for each family.
        type: list
        required: true
        elements: dict
        suboptions:
          cidr:
            description:
              - The range.
              - It is a network in CIDR form without host bits, such as 192.168.111.0/24.
            type: str
            required: true
          gateway:
            description:
              - Address of the hypervisor in it; the first of the range unless given.
              - It is an IPv4 or IPv6 address, such as 192.168.111.20.
            type: str
          dhcp:
            description: The DHCP range; none is served unless given.
            type: dict
            suboptions:
              start:
                description:
                  - First address.
                  - It is an IPv4 or IPv6 address, such as 192.168.111.20.
                type: str
                required: true
              end:
                description:
                  - Last address.
                  - It is an IPv4 or IPv6 address, such as 192.168.111.20.
                type: str
                required: true
              lease_minutes:
                description:
                  - For how many minutes a lease is valid.
                  - From 1 to 4294967296.
                type: int
                required: true
      bridge:
        description:
          - Name of its bridge; that of the network unless given.
          - 'It is the name of a bridge: at most 15 characters of letters, digits, ''_'', ''.'' and ''-''.'
        type: str
      mtu:
        description:
          - MTU in bytes; 1500 unless given.
          - From 1 to 4294967296.
        type: int
      nat:
        description: Whether its packets leave with the hypervisor's address; they do unless it is false.
        type: bool
      domain:
        description:
          - Domain of the names that it serves; '<cluster>.test' unless given.
          - It is a domain in lower case, such as test.metalkube.org.
        type: str
      dns:
        description: The names that it serves.
        type: dict
        suboptions:
          hosts:
            description: Exact names.
            type: list
            elements: dict
            suboptions:
              ip:
                description:
                  - The address.
                  - It is an IPv4 or IPv6 address, such as 192.168.111.20.
                type: str
                required: true
              names:
                description:
                  - Its names. Both the short form and the one with the network's domain are served.
                  - Each is a domain in lower case, such as test.metalkube.org.
                type: list
                required: true
                elements: str
          wildcards:
            description: Names of which only the domain is known.
            type: list
            elements: dict
            suboptions:
              domain:
                description:
                  - The domain.
                  - It is a domain in lower case, such as test.metalkube.org.
                type: str
                required: true
              ip:
                description:
                  - The address.
                  - It is an IPv4 or IPv6 address, such as 192.168.111.20.
                type: str
                required: true
      reservations:
        description: DHCP leases.
        type: list
        elements: dict
        suboptions:
          ip:
            description:
              - The address that it gets.
              - It is an IPv4 or IPv6 address, such as 192.168.111.20.
            type: str
            required: true
          name:
            description:
              - Host name of the node.
              - It is lower-case letters, digits and '-', such as master-0.
            type: str
            required: true
          mac:
            description:
              - MAC of the interface.
              - It is a unicast MAC, such as 00:1a:2b:3c:4d:5e.
            type: str
          duid:
            description: Link-layer DHCPv6 unique identifier of the interface.
            type: str
"""

    NODES = r"""
options:
  nodes:
    description: The machines. Needs O(cluster).
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Host name.
          - It is lower-case letters, digits and '-', such as master-0.
        type: str
        required: true
      vcpus:
        description:
          - Virtual CPUs; 2 unless given.
          - From 1 to 4294967296.
        type: int
      memory_mib:
        description:
          - Memory in MiB; 4096 unless given.
          - From 1 to 4294967296.
        type: int
      firmware:
        description: The machine's firmware; uefi unless given.
        type: str
        choices:
          - uefi
          - bios
      tpm:
        description: Whether it has a TPM 2.0; it has none unless given.
        type: bool
      disks:
        description: Its disks, in the order of their targets; none unless given.
        type: list
        elements: dict
        suboptions:
          size_gib:
            description:
              - Size in GiB.
              - From 1 to 4294967296.
            type: int
            required: true
          bus:
            description: Its bus; virtio unless given.
            type: str
            choices:
              - scsi
              - sata
              - virtio
      nics:
        description: Its interfaces; none unless given.
        type: list
        elements: dict
        suboptions:
          network:
            description:
              - Name of the network that it is in.
              - It is a name of letters, digits, '_', '.' and '-'.
            type: str
            required: true
          mac:
            description:
              - Its MAC; made of cluster, node and interface unless given.
              - It is a unicast MAC, such as 00:1a:2b:3c:4d:5e.
            type: str
"""
