#!/bin/sh
# deny.sh FILE [FLAG...] drops packets from the addresses and prefixes in FILE, where # begins
# a comment. FLAG is one of "weft apply". Run it after each change: only the difference is committed.
set -efu
words=$(sed 's/#.*//' "${1:?usage: deny.sh FILE [FLAG of weft apply...]}")
shift
elements=$(echo $words | tr ' ' ',')
[ -z "$elements" ] || elements="elements = { $elements };"
weft apply --name deny -f - "$@" <<END
table inet deny-sh {
	set blocked { type ipv4_addr; flags interval; $elements }
	chain input { type filter hook input priority filter; policy accept; ip saddr @blocked counter drop comment "deny.sh"; }
}
END
