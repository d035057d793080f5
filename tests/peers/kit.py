"""What the scripts of this folder share: checks that are said and counted, and our own programs beside them.

A check prints `ok NAME` where it holds and `FAILED NAME: why` where it does not; `leave` ends with 1 if any
did not.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request

failed = 0


def check(name, holds, seen=None):
    global failed
    if holds:
        print(f"ok {name}", flush=True)
    else:
        failed += 1
        print(f"FAILED {name}: {seen!r}", flush=True)


def leave():
    sys.exit(1 if failed else 0)


class Home:
    """A folder of its own with a simulated provider, a ledger and one agent."""

    def __init__(self, samekey, agent):
        self.samekey, self.children = samekey, []
        self.dir = tempfile.mkdtemp(prefix="samekey-peer-")
        self.env = {"HOME": self.dir, "PATH": os.environ["PATH"], "STRIPE_API_KEY": "sk_test_peer"}
        self.provider = self.start("sim", "--listen", "127.0.0.1:0")
        self.ledger = os.path.join(self.dir, "ledger.db")
        config = os.path.join(self.dir, "samekey.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[providers.stripe]\nbase_url = "http://{self.provider}"\n')
            file.write('rate = "1000/s"\nread_rate = "1000/s"\n[tools.issue_refund]\nrate = "1000/s"\n')
        self.env.update(SAMEKEY_CONFIG=config, SAMEKEY_LEDGER=f"sqlite:{self.ledger}")
        added = self.run("agents", "add", agent)
        self.token = json.loads(added.stdout)["token"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
            child.wait()

    def start(self, *args):
        """A program of ours that says on its first line where it listens."""
        child = subprocess.Popen([self.samekey, *args], stdout=subprocess.PIPE, text=True, env=self.env)
        self.children.append(child)
        line = child.stdout.readline().strip()
        if not line:
            sys.exit(f"samekey {args[0]} did not start")
        return line

    def run(self, *args):
        return subprocess.run([self.samekey, *args], env=self.env, capture_output=True, text=True, check=False)

    def refunds(self, order):
        """How many refunds the provider made of an order."""
        url = f"http://{self.provider}/v1/refunds?payment_intent=pi_order_{order}&limit=100"
        request = urllib.request.Request(url, headers={"Authorization": "Bearer sk_test_peer"})
        with urllib.request.urlopen(request) as reply:
            return len(json.load(reply)["data"])

    def check_ledger(self):
        audit = self.run("verify")
        check("the ledger is whole", audit.returncode == 0, audit.stdout + audit.stderr)
