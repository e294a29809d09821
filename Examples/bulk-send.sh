#!/usr/bin/env bash
# Sends a list, one hex a line, to one or more peers.
#
#     Examples/bulk-send.sh FILE PEER [PEER…]        FILE may be - for standard input
#
# A line is `URL description`, or a hex as JSON:
#     {"description": "…", "color": "#3366CC", "links": [{"url": "…", "linkDescription": "…"}]}
# Empty lines and lines that begin with # are skipped.
#
# Every line is queued durably and goes out by itself, now or when its peer is back. Each has a key made from its content,
# so running the same list again, after an interruption or with lines added, sends only what is new.
#
# HEXLIST names another hexlist program. Ends with 0 when every line is queued, 2 when some lines were no input, 5 without a
# daemon, 6 for an unknown peer, 1 otherwise.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
file=$1
shift
targets=()
for peer in "$@"; do targets+=(--to "$peer"); done
read -r -a hexlist <<<"${HEXLIST:-hexlist}"

# A JSON line as arguments of `hexlist send`, one each, ended by NUL: description, color, then `URL description` for each link.
arguments_of() {
    /usr/bin/python3 -I -c '
import json, sys
hex = json.load(sys.stdin)
links = hex["links"]
words = [hex.get("description", ""), hex.get("color", "")]
words += [(link if isinstance(link, str) else link["url"] + " " + link.get("linkDescription", "")).strip() for link in links]
assert len(words) > 2 and not any("\0" in word for word in words)
sys.stdout.write("".join(word + "\0" for word in words))' 2>/dev/null
}

number=0 queued=0 invalid=0 failed=0
while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case $line in
        '' | '#'*) continue ;;
        '{'*)
            mapfile -d '' -t words < <(arguments_of <<<"$line")
            if [ "${#words[@]}" -lt 3 ]; then
                echo "line $number is no hex" >&2
                invalid=$((invalid + 1))
                continue
            fi
            arguments=(--description "${words[0]}" --color "${words[1]}" -- "${words[@]:2}")
            ;;
        *) arguments=(-- "$line") ;;
    esac
    key=$(printf '%s' "$line" | sha256sum)
    status=0
    "${hexlist[@]}" send "${targets[@]}" --wait queued --key "bulk-${key%% *}" "${arguments[@]}" >/dev/null </dev/null || status=$?
    case $status in
        0 | 3) queued=$((queued + 1)) ;;
        2)
            echo "line $number is no input" >&2
            invalid=$((invalid + 1))
            ;;
        5 | 6) exit "$status" ;;
        *)
            echo "line $number failed" >&2
            failed=$((failed + 1))
            ;;
    esac
done < <(cat -- "$file")

echo "$queued queued, $invalid invalid, $failed failed"
[ "$failed" = 0 ] || exit 1
[ "$invalid" = 0 ] || exit 2
