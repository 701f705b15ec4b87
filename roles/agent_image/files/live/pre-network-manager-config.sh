#!/usr/bin/env bash
# Finds the network configuration of this host by MAC, and installs it for NetworkManager, after the names of
# interfaces, which the user chose, are replaced by the kernel's.
set -euo pipefail
shopt -s nullglob

source_dir=/etc/assisted/network
if [[ ! -d $source_dir ]]; then
    echo "Info: $source_dir does not exist, nothing to do"
    exit 0
fi
target_dir=/etc/NetworkManager/system-connections
if [[ -e /etc/initrd-release ]]; then
    # The real root copies from here.
    target_dir=/etc/coreos-firstboot-network
fi

# MAC, in capitals -> the kernel's name.
declare -A local_nics=()
for file in /sys/class/net/*/address; do
    mac=$(< "$file")
    nic=${file%/address}
    [[ -z $mac ]] || local_nics[${mac^^}]=${nic##*/}
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Where a VLAN's name gets too long, its parent's part is cut: "old name" -> "new name".
declare -A renamed_vlans=()

# One sed takes all changes of all files: each process takes an emulated machine tenths of a second.
changes=()
# rename FROM TO: names at the end of a setting, or followed by a VLAN's number.
rename() {
    changes+=(-e "s/=$1\$/=$2/; s/=$1\\./=$2./")
}

matched=
for host_dir in "$source_dir"/host*; do
    ini="$host_dir/mac_interface.ini"
    [[ -f $ini ]] || continue
    declare -A names=()
    while IFS='=' read -r mac logical || [[ -n $mac ]]; do
        mac=${mac^^}
        if [[ -n $mac && -n ${local_nics[$mac]:-} ]]; then
            names[$logical]=${local_nics[$mac]}
        fi
    done < "$ini"
    if (( ${#names[@]} == 0 )); then
        unset names
        continue
    fi
    matched=yes
    echo "Info: $host_dir is for this host"
    stage=$(mktemp -d -p "$work")
    for file in "$host_dir"/*.nmconnection; do
        base=${file##*/}
        new=$base
        for logical in "${!names[@]}"; do
            real=${names[$logical]}
            if [[ $base == "$logical.nmconnection" ]]; then
                new="$real.nmconnection"
            elif [[ $base == "$logical".*.nmconnection ]]; then
                id=${base#"$logical."}
                id=${id%.nmconnection}
                short=${real:0:$(( 15 - ${#id} - 1 ))}
                [[ $short == "$real" ]] || renamed_vlans["$real.$id"]="$short.$id"
                new="$short.$id.nmconnection"
            fi
        done
        if [[ -e $stage/$new || -e $work/$new ]]; then
            echo "Error: there are two configurations for $new" >&2
            continue
        fi
        cp "$file" "$stage/$new"
    done
    # In two steps, so that swapped names do not collide.
    changes=()
    number=0
    for logical in "${!names[@]}"; do
        number=$(( number + 1 ))
        rename "${logical//./\\.}" "@nic$number@"
    done
    number=0
    for logical in "${!names[@]}"; do
        number=$(( number + 1 ))
        rename "@nic$number@" "${names[$logical]}"
    done
    for old in "${!renamed_vlans[@]}"; do
        changes+=(-e "s/=${old//./\\.}\$/=${renamed_vlans[$old]}/")
    done
    files=("$stage"/*.nmconnection)
    if (( ${#files[@]} )); then
        sed -i -E "${changes[@]}" "${files[@]}"
        mv "${files[@]}" "$work/"
    fi
    rmdir "$stage"
    unset names
done

if [[ -z $matched ]]; then
    echo "Info: No matching host directories found"
    exit 0
fi
mkdir -p "$target_dir"
rm -f "$target_dir"/*
files=("$work"/*.nmconnection)
(( ${#files[@]} == 0 )) || install -m 0600 "${files[@]}" "$target_dir/"
for file in "${files[@]}"; do
    echo "Info: installed $target_dir/${file##*/}"
done
