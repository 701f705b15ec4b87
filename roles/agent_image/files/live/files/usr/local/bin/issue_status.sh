#!/usr/bin/env bash
# To be sourced: messages on the console, one file in /etc/issue.d for each.

# set_issue NAME: show stdin, replacing the previous text of NAME.
set_issue() {
    local file="/etc/issue.d/$1.issue" text
    text=$(cat)
    if [[ -f $file && $(<"$file") == "$text" ]]; then
        return 0
    fi
    mkdir -p /etc/issue.d
    printf '%s\n' "$text" > "$file"
    agetty --reload || true
}

# clear_issue NAME: remove it.
clear_issue() {
    local file="/etc/issue.d/$1.issue"
    if [[ -f $file ]]; then
        rm -f "$file"
        agetty --reload || true
    fi
}
