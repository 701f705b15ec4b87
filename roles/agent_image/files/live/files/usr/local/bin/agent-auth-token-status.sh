#!/usr/bin/env bash
# Reports on the console that the tokens of this image have expired.
set -euo pipefail

# shellcheck source=/dev/null
. /usr/local/bin/issue_status.sh
# shellcheck source=/dev/null
. /etc/assisted/add-nodes.env

expiry=$(date -d "$AUTH_TOKEN_EXPIRY" +%s)
while (( $(date +%s) < expiry )); do
    sleep 30
done
printf '\\e{lightred}The token of this image expired at %s: create a new image and boot this host from it.\\e{reset}\n' \
    "$AUTH_TOKEN_EXPIRY" | set_issue 99_token_expired
