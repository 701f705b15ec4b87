"""Options of the modules that work without a plan, in a few lines each; ci/generate.py writes this file."""

from __future__ import annotations


class ModuleDocFragment:
    """One for each option."""

    NETWORKS = r"""
options:
  networks:
    description:
      - The networks. Not used with a plan.
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
        description:
          - Its addresses, one entry for each family.
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
            description:
              - The DHCP range; none is served unless given.
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
          - From 1280 to 9216.
        type: int
      nat:
        description:
          - Whether its packets leave with the hypervisor's address; they do unless it is false.
        type: bool
      domain:
        description:
          - Domain of the names that it serves; '<cluster>.test' unless given.
          - It is a domain in lower case, such as test.metalkube.org.
        type: str
      dns:
        description:
          - The names that it serves.
        type: dict
        suboptions:
          hosts:
            description:
              - Exact names.
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
            description:
              - Names of which only the domain is known.
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
        description:
          - DHCP leases.
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
            description:
              - Link-layer DHCPv6 unique identifier of the interface.
            type: str
"""

    NODES = r"""
options:
  nodes:
    description:
      - The machines. Not used with a plan.
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
        description:
          - The machine's firmware; uefi unless given.
        type: str
        choices:
          - uefi
          - bios
      tpm:
        description:
          - Whether it has a TPM 2.0; it has none unless given.
        type: bool
      disks:
        description:
          - Its disks, in the order of their targets; none unless given.
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
            description:
              - Its bus; virtio unless given.
            type: str
            choices:
              - scsi
              - sata
              - virtio
      nics:
        description:
          - Its interfaces; none unless given.
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

    MACHINES = r"""
options:
  machines:
    description:
      - The machines that are switched on. Not used with a plan.
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
        description:
          - The machine's firmware; uefi unless given.
        type: str
        choices:
          - uefi
          - bios
      tpm:
        description:
          - Whether it has a TPM 2.0; it has none unless given.
        type: bool
      disks:
        description:
          - Its disks, in the order of their targets; none unless given.
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
            description:
              - Its bus; virtio unless given.
            type: str
            choices:
              - scsi
              - sata
              - virtio
      nics:
        description:
          - Its interfaces; none unless given.
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
      image:
        description:
          - '''lab'' unless given: the lab''s operating system, which it boots from a CD; or the path of an image (qcow2 or
            raw) below its first disk, which is not changed. Such a disk has 10 GiB unless ''disks'' has another size.'
          - It is 'lab', or the path of an image from the root or from home.
        type: str
      network_config:
        description:
          - nmstate of one with the image 'lab'.
        type: dict
      files:
        description:
          - 'Small files of one with the image ''lab'': path and text.'
        type: dict
      units:
        description:
          - 'Units of systemd that one with the image ''lab'' enables: name and text.'
        type: dict
"""

    SERVICES = r"""
options:
  services:
    description:
      - The services at the gateway of the first network. Those that are named run, with the defaults of a profile. Not used
        with a plan.
    type: dict
    suboptions:
      registry:
        description:
          - The mirror registry.
        type: dict
        suboptions:
          port:
            description:
              - Its port.
              - From 1 to 65535.
            type: int
          username:
            description:
              - Its user.
              - It is ASCII characters without blanks and ':', such as admin.
            type: str
          password:
            description:
              - 'Password of that user. Null: a random one for each cluster.'
              - It is from 1 to 72 bytes of printable characters, in one line.
            type: str
      bmc:
        description:
          - The BMC emulator.
        type: dict
        suboptions:
          port:
            description:
              - Its port.
              - From 1 to 65535.
            type: int
          username:
            description:
              - User of all BMCs.
              - It is ASCII characters without blanks and ':', such as admin.
            type: str
          password:
            description:
              - 'Password of that user. Null: a random one for each cluster.'
              - It is from 1 to 72 bytes of printable characters, in one line.
            type: str
      http:
        description:
          - The file server.
        type: dict
        suboptions:
          port:
            description:
              - Its port.
              - From 1 to 65535.
            type: int
      ntp:
        description:
          - The time server.
        type: dict
        suboptions:
          port:
            description:
              - Its port. NTP clients always use this one.
            type: int
            choices:
              - 123
"""

    FAULTS = r"""
options:
  faults:
    description:
      - What goes wrong on purpose. Which fields a fault has depends on its kind. Not used with a plan.
    type: list
    elements: dict
    suboptions:
      kind:
        description:
          - What goes wrong.
        type: str
        required: true
      node:
        description:
          - The machine that it happens to.
          - It is a name of letters, digits, '_', '.' and '-'.
        type: str
      nic:
        description:
          - Its interface, eth0 unless given.
          - It is a name of letters, digits, '_', '.' and '-'.
        type: str
      peer:
        description:
          - The machine whose replies it does not receive.
          - It is a name of letters, digits, '_', '.' and '-'.
        type: str
      of:
        description:
          - The machine whose host name it has.
          - It is a name of letters, digits, '_', '.' and '-'.
        type: str
      mtu:
        description:
          - The largest packet that the switch port passes, in bytes.
          - From 576 to 9216.
        type: int
      milliseconds:
        description:
          - By how long each packet is late, in either direction.
          - From 1 to 60000.
        type: int
      percent:
        description:
          - How many of a hundred packets are lost, in either direction.
          - From 1 to 100.
        type: int
      kbits:
        description:
          - The rate of either direction, in kilobits per second.
          - From 8 to 10000000.
        type: int
      bytes_per_second:
        description:
          - How fast the machine reads its medium at most.
          - From 1024 to 1000000000.
        type: int
      service:
        description:
          - The service of the lab that ends.
        type: str
        choices:
          - registry
          - ntp
          - bmc
          - http
      component:
        description:
          - The component of the release.
          - It is a name of letters, digits, '_', '.' and '-'.
        type: str
      offset:
        description:
          - By how many seconds the clock is off.
          - From -1000000000 to 1000000000.
        type: int
      when:
        description:
          - 'The trigger: ''boot'', or an installation stage or status of the node that it has reached.'
        type: str
        choices:
          - boot
          - Starting installation
          - Waiting for control plane
          - Waiting for bootkube
          - Waiting for controller
          - Installing
          - Writing image to disk
          - Copying registry data to disk
          - Rebooting
          - Waiting for ignition
          - Configuring
          - Joined
          - Done
          - Failed
          - discovering
          - known
          - disconnected
          - insufficient
          - pending-for-input
          - ready
          - preparing-for-installation
          - preparing-successful
          - preparing-failed
          - installing
          - installing-in-progress
          - installing-pending-user-action
          - finalizing
          - resetting-pending-user-action
          - installed
          - error
          - cancelled
      seconds:
        description:
          - 'How long it lasts; null, or not given: until the end.'
          - From 1 to 86400.
        type: int
"""

    TESTS = r"""
options:
  tests:
    description:
      - 'The tests. Each has one of C(run), C(http) and C(console). In a playbook C(on) is quoted: it would be a boolean.
        Not used with a plan.'
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Its name, which no other test has.
          - It is lower-case letters, digits and '-', such as master-0.
        type: str
        required: true
      'on':
        description:
          - 'Where it is: the name of a node or of one of ''machines'', ''lab'' (the cluster''s network), ''host'' (this host),
            or ''api'' (the OpenShift API).'
          - It is a name of letters, digits, '_', '.' and '-'.
        type: str
        required: true
      run:
        description:
          - 'A command: its words, or text for ''sh -c''. On a node as user core, else as the user who runs agentlab.'
          - It is a command for 'sh', or a list with its words, such as [systemctl, is-active, kubelet].
        type: raw
      http:
        description:
          - 'What is requested by GET: a URL; on ''api'' a path, with the kubeconfig''s credentials.'
          - It is a URL, or a path of the API, such as /readyz.
        type: str
      console:
        description:
          - 'What the node''s serial console must show: it is read again until a part of it matches, or the time is over.'
          - It is a regular expression of Python, of at most 1000 characters, such as ^active$.
        type: str
      expect:
        description:
          - What a test expects of its command, or of the response.
        type: dict
        suboptions:
          status:
            description:
              - Exit status of the command, 0 unless given; or status of the response, 200 unless given.
              - From 0 to 599.
            type: int
          output:
            description:
              - What its output (stdout and stderr) or the response's body must match somewhere; '^' and '$' match at each
                line.
              - It is a regular expression of Python, of at most 1000 characters, such as ^active$.
            type: str
      timeout:
        description:
          - Limit in seconds, 60 unless given.
          - From 1 to 86400.
        type: int
"""

    HOSTS = r"""
options:
  hosts:
    description:
      - The hosts. By default those in C(hosts) of the directory, which dev-scripts writes, or else the rendezvous host. Not
        used with a plan.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Its name, that of a folder of the report.
          - It is lower-case letters, digits and '-', such as master-0.
        type: str
        required: true
      address:
        description:
          - Its name in DNS, or its address.
          - It is a host name or an IP address, such as lab1.example.com.
        type: str
        required: true
"""
