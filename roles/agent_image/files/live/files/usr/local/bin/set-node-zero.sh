#!/usr/bin/env bash
# Determines whether this host is the rendezvous host, and creates /etc/assisted/node0 for the other units if so.
set -euo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/issue_status.sh

env_file=/etc/assisted/rendezvous-host.env
until [[ -f $env_file ]]; do
    printf '\\e{lightred}Waiting for the configuration of this cluster: %s is missing.\\e{reset}\n' "$env_file" \
        | set_issue 60-rendezvous-host
    sleep 30
done
# shellcheck source=/dev/null
. "$env_file"

# mac_of ADDRESS: the MAC of the interface with the address.
mac_of() {
    ip -j address | jq -r --arg ip "$1" 'first(.[] | select(any(.addr_info[]?; .local == $ip)) | .address) // empty'
}

mac=
for (( waited = 0; waited <= 30; waited += 5 )); do
    mac=$(mac_of "$NODE_ZERO_IP")
    [[ -z $mac ]] || break
    sleep 5
done

# report TEXT: on the console and at login.
report() {
    printf '%s\n' "$1" | set_issue 60-rendezvous-host
    mkdir -p /etc/motd.d
    printf '%s\n' "$1" > /etc/motd.d/60-rendezvous-host
}

if [[ -z $mac ]]; then
    report "This host is not the rendezvous host. The rendezvous host is at $NODE_ZERO_IP."
    exit 0
fi

# An image without a cluster has no signers; the installer of the release creates them here.
if [[ -d /opt/agent/tls && -z $(ls -A /opt/agent/tls) ]]; then
    /usr/local/bin/release-image-download.sh
    # shellcheck source=/dev/null
    . /usr/local/bin/release-image.sh
    installer=$(image_for installer)
    pull_image "$installer"
    work=$(mktemp -d)
    podman run --quiet --rm --net=none -v "$work:/assets:z" "$installer" agent create certificates --dir /assets
    cp "$work"/tls/* /opt/agent/tls/
    rm -rf "$work"
fi

echo "BOOTSTRAP_HOST_MAC=$mac" > /etc/assisted/node0.new
mv /etc/assisted/node0.new /etc/assisted/node0
report "This host ($NODE_ZERO_IP) is the rendezvous host."
