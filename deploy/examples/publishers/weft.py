"""Publish nftables rules through weft, with the standard library alone.

    with weft.Publisher("demo") as p:
        p.put("deny", nft="table inet demo { set blocked { type ipv4_addr; }; }")
        p.change("deny", "inet", "demo", "blocked", add=["192.0.2.1"])

Every call returns the revision of the commit that carries the update, or raises Rejected, and then
the fragment is what it was before. It runs "weft publish --stdin", which reconnects by itself.
"""

import json
import subprocess
import threading


class Error(Exception):
    """weft publish has ended, or an update was malformed."""


class Rejected(Error):
    """An update was rejected. violations has all that is wrong: dictionaries like weft.v1.Violation."""

    def __init__(self, message, violations):
        super().__init__(message)
        self.violations = violations


class Publisher:
    """A publisher's session, for one or several threads.

    lifetime is "sticky" (the default: fragments stay when this program ends), "session" (they do
    not) or "durable" (they are back after a reboot)."""

    def __init__(self, name=None, socket=None, lifetime=None, command="weft"):
        flags = {"--publisher": name, "--socket": socket, "--lifetime": lifetime}
        args = [a for flag, value in flags.items() if value is not None for a in (flag, value)]
        self._lock, self._last = threading.Lock(), 0
        self._process = subprocess.Popen(
            [command, "publish", "--stdin", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def put(self, name, **content):
        """Replace a fragment. content is nft="...", the text of a .nft file, or tables=[...]; also priority."""
        return self.publish({"snapshot": {"name": name, **content}})

    def change(self, fragment, family, table, name, add=(), remove=()):
        """Add elements (keys, or dictionaries like weft.v1.Element) to a set or map, and remove keys."""
        added = [e if isinstance(e, dict) else {"key": e} for e in add]
        return self.patch(fragment, [{"family": family, "name": table, "elements": [{"set": name, "add": added, "remove": list(remove)}]}])

    def patch(self, fragment, tables):
        """Change a fragment. tables are dictionaries like weft.v1.TablePatch."""
        return self.publish({"patch": {"fragment": fragment, "tables": tables}})

    def withdraw(self, name):
        """Remove a fragment."""
        return self.publish({"withdraw": name})

    def publish(self, update):
        """Send a weft.v1.PublishRequest as a dictionary, and return the revision."""
        with self._lock:
            self._last += 1
            try:
                print(json.dumps({**update, "id": self._last}), file=self._process.stdin, flush=True)
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
        """End the session. Fragments whose lifetime is "session" are removed."""
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
            self._process.terminate()
        self.close()
