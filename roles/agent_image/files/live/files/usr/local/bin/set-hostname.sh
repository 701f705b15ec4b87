#!/usr/bin/env bash
# Sets the host name of agent-config for the host with this MAC.
set -euo pipefail

shopt -s nullglob
addresses=$(ip -j link | jq -r '.[].address // empty' | tr '[:upper:]' '[:lower:]')
for file in /etc/assisted/hostnames/*; do
    if grep -qxF "$(basename "$file")" <<< "$addresses"; then
        name=$(<"$file")
        echo "The name of this host is $name"
        hostnamectl set-hostname "$name"
        exit 0
    fi
done
echo "No host name is configured for this host"
