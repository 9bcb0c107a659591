"""Publish nftables rules through weft, with the standard library alone.

    import weft

    with weft.Publisher("demo") as p:
        p.put("deny", nft='''table inet demo {
            set blocked { type ipv4_addr; }
            chain input {
                type filter hook input priority filter;
                ip saddr @blocked drop
            }
        }''')
        p.change("deny", "inet", "demo", "blocked", add=["192.0.2.1"])

Every call returns the revision of the commit that carries the update, or raises
Rejected, and then the fragment is what it was before. Lost connections come
back by themselves. It drives "weft publish --stdin", which has to be on the
PATH; all that PROTOCOL.md says of snapshots and patches holds.
"""

import json
import subprocess
import threading


class Error(Exception):
    """weft can not go on, or an update was malformed."""


class Rejected(Error):
    """An update was refused; violations has all that is wrong with it.

    A violation is a dictionary with message and reason, and where they are
    known object, line, column and excerpt.
    """

    def __init__(self, message, violations):
        super().__init__(message)
        self.violations = violations


class Publisher:
    """A publisher's session. It may be used by several threads."""

    def __init__(self, name=None, socket=None, lifetime=None, command="weft"):
        """Start the session.

        name is the publisher's (None lets weft say "uid-N"), socket the path
        of the aggregator's socket. lifetime is that of fragments: "sticky"
        (the default; they stay when this program ends), "session" (they do
        not) or "durable" (they are back after a reboot).
        """
        args = [command, "publish", "--stdin"]
        for flag, value in (("publisher", name), ("socket", socket), ("lifetime", lifetime)):
            if value is not None:
                args += ["--" + flag, value]
        self._lock = threading.Lock()
        self._last = 0
        self._process = subprocess.Popen(
            args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def put(self, name, nft=None, tables=None, priority=0):
        """Replace a fragment by the text of a .nft file, or by tables."""
        fragment = {"name": name, "priority": priority}
        if nft is not None:
            fragment["nft"] = nft
        if tables is not None:
            fragment["tables"] = tables
        return self.publish({"snapshot": fragment})

    def change(self, fragment, family, table, name, add=(), remove=()):
        """Add and remove elements of a set or map of a fragment.

        remove has keys; add has keys, or dictionaries with key, value, comment
        and timeout_ms. Adding what is there and removing what is not is fine.
        """
        added = [e if isinstance(e, dict) else {"key": e} for e in add]
        return self.patch(fragment, [{"family": family, "name": table, "elements": [
            {"set": name, "add": added, "remove": list(remove)}]}])

    def patch(self, fragment, tables):
        """Change a fragment; tables are dictionaries like weft.v1.TablePatch."""
        return self.publish({"patch": {"fragment": fragment, "tables": tables}})

    def withdraw(self, name):
        """Take a fragment away."""
        return self.publish({"withdraw": name})

    def publish(self, update):
        """Send a weft.v1.PublishRequest as a dictionary; return the revision."""
        with self._lock:
            self._last += 1
            try:
                self._process.stdin.write(json.dumps({**update, "id": self._last}) + "\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (BrokenPipeError, ValueError) as e:
                raise Error(f"weft publish has ended: {e}") from e
            if not line:
                raise Error(f"weft publish ended with exit code {self._process.wait()}")
        answer = json.loads(line)
        if "violations" in answer:
            raise Rejected(answer["error"], answer["violations"])
        if "error" in answer:
            raise Error(answer["error"])
        return answer["revision"]

    def close(self):
        """End the session; fragments whose lifetime is "session" go."""
        with self._lock:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
            self._process.stdout.close()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            # Nobody waits for what is on its way any more.
            self._process.terminate()
        self.close()
