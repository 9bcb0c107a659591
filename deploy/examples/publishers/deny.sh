#!/bin/sh
# deny.sh FILE [FLAG...]: have packets from the addresses and prefixes in FILE
# dropped; the flags are those of "weft apply". Run it again whenever the file
# has changed: only the difference is committed, and what is refused changes
# nothing (exit code 1).
set -eu
file=${1:?usage: deny.sh FILE [FLAG of weft apply...]}
shift
[ -r "$file" ] || { echo "deny.sh: $file can not be read" >&2; exit 1; }
# One address or prefix per line; what follows a # is a comment.
elements=$(sed 's/#.*//' "$file" | tr -s '[:space:]' ',' | sed 's/^,//; s/,$//')
[ -z "$elements" ] || elements="elements = { $elements };"
weft apply --name deny -f - "$@" <<END_OF_NFT
table inet deny-sh {
	set blocked { type ipv4_addr; flags interval; $elements }
	chain input {
		type filter hook input priority filter; policy accept;
		ip saddr @blocked counter drop comment "deny.sh"
	}
}
END_OF_NFT
