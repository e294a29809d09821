#!/usr/bin/env bash
# The walk-through of two-machines.md as a script: two hosts in network namespaces, each with avahi-daemon and hexlistd. Run it after `make
# build`, as root or as a user who may create user namespaces.
set -euo pipefail
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.."
export HEXLIST_LAB="example-$$"
lab=Scripts/lab

$lab up --owner $$ ada bob
trap '$lab down' EXIT
$lab start ada
$lab start bob

# Wait until they find each other.
$lab hexlist ada peers --wait 1 --timeout 60s
$lab hexlist bob peers --wait 1 --timeout 60s
id_of() { $lab hexlist "$1" id --json | sed -E 's/.*"uuid": ?"([^"]+)".*/\1/'; }
ada=$(id_of ada)
bob=$(id_of bob)

# A stranger's hex is held (status 3: accepted, but not in the inbox yet).
status=0
$lab hexlist ada send --to "$bob" "https://www.rfc-editor.org/rfc/rfc6763 How services get their names" || status=$?
[ "$status" = 3 ]
$lab hexlist bob inbox --held

# Bob trusts ada: held hexes move to the inbox, and the next one goes there directly.
$lab hexlist bob peer trust "$ada"
$lab hexlist ada send --to "$bob" --description "Two more" https://www.sqlite.org/wal.html https://avahi.org
$lab hexlist bob inbox

# A list of hexes while bob is away. They are sent when he returns.
$lab stop bob
for number in 1 2 3; do
    echo '{"key":"example-'$number'","description":"Number '$number'","links":["https://example.org/'$number'"]}'
done | $lab hexlist ada send --to "$bob" --wait queued --bulk -
$lab hexlist ada outbox list
$lab start bob

# Follows bob's event log until the fifth hex has arrived.
count=0
while read -r line; do
    case $line in *'"hex.received"'*) count=$((count + 1)) ;; esac
    [ "$count" -lt 5 ] || break
done < <(timeout 120 $lab hexlist bob events --since 0 --follow --json)
[ "$count" = 5 ]
$lab hexlist bob inbox
