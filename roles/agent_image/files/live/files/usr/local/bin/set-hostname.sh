#!/usr/bin/env bash
# Sets the host name of agent-config for the host with this MAC.
set -euo pipefail

shopt -s nullglob
# A NIC in a bond has the bond's address, and its own as `permaddr`.
addresses=$(ip -j link | jq -r '.[] | .address, .permaddr | select(.)' | tr '[:upper:]' '[:lower:]')
for file in /etc/assisted/hostnames/*; do
    if grep -qxF "$(basename "$file")" <<< "$addresses"; then
        name=$(<"$file")
        echo "The name of this host is $name"
        # hostnamectl failed once on a busy host, which then kept a name made of its MAC.
        for (( try = 1; try <= 10; try++ )); do
            hostnamectl set-hostname "$name" && exit 0
            sleep 2
        done
        exit 1
    fi
done
echo "No host name is configured for this host"
