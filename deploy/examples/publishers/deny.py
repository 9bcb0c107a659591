#!/usr/bin/env python3
"""Drop packets from the addresses and prefixes in a file, one per line (# begins a comment).

The file is read every second. A file with a mistake is rejected as a whole; the last good one
stays in force, also after this program ends."""

import argparse
import signal
import sys
import time

import weft


def tables(words):
    return [{
        "family": "inet", "name": "deny-py",
        "sets": [{"name": "blocked", "type": "ipv4_addr", "flags": ["interval"], "elements": [{"key": w} for w in words]}],
        "chains": [{"name": "input", "type": "filter", "hook": "input", "priority": "filter",
                    "rules": [{"text": "ip saddr @blocked counter drop", "comment": "deny.py"}]}]}]


def read(path):
    with open(path, encoding="utf-8") as f:
        return sorted({word for line in f for word in line.partition("#")[0].split()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--publisher", default="deny-py")
    parser.add_argument("--socket")
    parser.add_argument("--interval", type=float, default=1, help="seconds between two looks at the file")
    args = parser.parse_args()
    sent, again = None, 0
    with weft.Publisher(args.publisher, socket=args.socket) as publisher:
        for s in (signal.SIGINT, signal.SIGTERM):
            signal.signal(s, lambda *_: sys.exit(0))
        while True:
            try:
                words = read(args.file)
                if words != sent or time.monotonic() > again:
                    # weft sends what is different from the last list, or nothing.
                    sent, again = words, time.monotonic() + 30
                    print(f"revision {publisher.put('deny', tables=tables(words))}: {len(words)} blocked", flush=True)
            except (OSError, UnicodeDecodeError, weft.Rejected) as e:
                print(f"deny.py: {e}", file=sys.stderr)
            time.sleep(args.interval)


if __name__ == "__main__":
    try:
        main()
    except weft.Error as e:
        sys.exit(f"deny.py: {e}")
