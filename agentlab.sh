#!/bin/sh
# agentlab: creates its virtual environment on first use, then runs in it. bin/agentlab is a link to this file.
set -eu

root=$(dirname -- "$(readlink -f -- "$0")")
venv=${AGENTLAB_VENV:-$root/.venv}
verb=${1:-}

fail() {
    echo "agentlab: $*" >&2
    exit 1
}

# The environment records its requirements, so that a change is noticed.
current() {
    cmp -s "$root/requirements.lock" "$venv/agentlab-requirements.lock"
}

find_python() {
    for name in ${AGENTLAB_PYTHON:-python3.13 python3.12 python3.11 python3}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    fail "Python 3.11 or newer is required; install it, or set AGENTLAB_PYTHON"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian and Ubuntu have the venv module in a package of its own, which only `setup` may install.
install_venv() {
    echo "agentlab: installing python3-venv" >&2
    { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3-venv; } >&2
}

make_environment() {
    echo "agentlab: creating the environment in $venv" >&2
    if ! [ -x "$venv/bin/pip" ]; then
        python=$(find_python)
        if ! "$python" -c 'import ensurepip' 2>/dev/null; then
            if [ "$verb" != setup ] || ! command -v apt-get >/dev/null || ! install_venv; then
                fail "$python cannot create virtual environments; \`make setup\` installs what is missing (Debian, Ubuntu: python3-venv)"
            fi
        fi
        "$python" -m venv "$venv" >&2 || fail "$python could not make $venv"
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$root/requirements.lock" >&2 ||
        fail "pip could not install $root/requirements.lock into $venv"
    packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mkdir -p "$packages/ansible_collections/agentlab"
    ln -sfn "$root" "$packages/ansible_collections/agentlab/ocp"
    cp "$root/requirements.lock" "$venv/agentlab-requirements.lock"
}

if ! current; then
    mkdir -p "$venv"
    exec 9>"$venv/.lock"
    flock 9
    current || make_environment
    exec 9>&-
fi

exec "$venv/bin/python" -m ansible_collections.agentlab.ocp.plugins.module_utils.cli "$@"
