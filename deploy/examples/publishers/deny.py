#!/usr/bin/env python3
"""Have packets from the addresses and prefixes in a file dropped.

The file has one of them per line; what follows a # is a comment. It is read
again every second (replace it with mv, as editors do), and what is new is sent
as a patch. A file with a mistake is refused as a whole: the last good one stays
in force, also when this program ends.
"""

import argparse
import signal
import sys
import time

import weft

# Seconds after which what was refused is sent again.
RETRY = 30
FRAGMENT, FAMILY, TABLE, SET = "deny", "inet", "deny-py", "blocked"


def tables(wanted):
    """Return what the fragment holds: weft.v1.Table as dictionaries."""
    return [{
        "family": FAMILY, "name": TABLE,
        "sets": [{
            "name": SET, "type": "ipv4_addr", "flags": ["interval"],
            "elements": [{"key": key} for key in sorted(wanted)],
        }],
        "chains": [{
            "name": "input", "type": "filter", "hook": "input", "priority": "filter",
            "rules": [{"text": f"ip saddr @{SET} counter drop", "comment": "deny.py"}],
        }],
    }]


def read(path):
    """Return the set of addresses and prefixes in a file."""
    with open(path, encoding="utf-8") as f:
        return {word for line in f for word in line.partition("#")[0].split()}


def publish(publisher, before, wanted):
    """Send what is wanted: all of it, or what is new since before."""
    if before is None:
        return publisher.put(FRAGMENT, tables=tables(wanted))
    return publisher.change(FRAGMENT, FAMILY, TABLE, SET, add=sorted(wanted - before), remove=sorted(before - wanted))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--publisher", default="deny-py")
    parser.add_argument("--socket")
    parser.add_argument("--interval", type=float, default=1, help="seconds between two looks at the file")
    args = parser.parse_args()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: sys.exit(0))
    committed = refused = None
    again = 0.0
    with weft.Publisher(args.publisher, socket=args.socket) as publisher:
        while True:
            try:
                wanted = read(args.file)
            except (OSError, UnicodeDecodeError) as e:
                print(f"deny.py: {e}", file=sys.stderr)
                wanted = committed
            if wanted is not None and wanted != committed and (wanted != refused or time.monotonic() > again):
                try:
                    revision = publish(publisher, committed, wanted)
                    print(f"revision {revision}: {len(wanted)} blocked", flush=True)
                    committed, refused = wanted, None
                except weft.Rejected as e:
                    # Another publisher may be in the way: try again some time.
                    refused, again = wanted, time.monotonic() + RETRY
                    for v in e.violations:
                        print(f"deny.py: {v.get('object', '')}: {v['message']}", file=sys.stderr)
            time.sleep(args.interval)


if __name__ == "__main__":
    try:
        main()
    except weft.Error as e:
        sys.exit(f"deny.py: {e}")
