#!/usr/bin/env python3
"""How fast the screen is on a large ledger with its engine at work: key to paint, change to paint,
start, idle CPU, memory. Runs the real binary in a pseudo-terminal of 120x40, read through a terminal
emulator; each figure is a line with p50, p99 and the aim beside it.

    cargo build --release && python3 tests/measure_screen.py [--rows 1000000] [--ledger FILE]

The ledger is made once (a million rows take a minute or two, and 4 GB) and used again. Needs Linux,
Python 3 and the package pyte, which is put into a virtual environment beside the ledger where it is
missing. A latency is from the write of a key (or the return of another process's commit) to the arrival
of the output after which the screen shows what is waited for. Exit code 1: an aim was missed; 2: nothing
could be measured."""

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, LINES = 120, 40
TOKEN = re.compile(r"op_(?:…|\.\.\.)([0-9a-f]{4})")
KEY = "sk_test_measure"


def stop(why):
    print(f"\n*** NOTHING WAS MEASURED: {why} ***\n", file=sys.stderr)
    sys.exit(2)


def with_pyte(home):
    """Imports pyte; where it is missing, from a virtual environment, in which this script starts again."""
    try:
        import pyte

        return pyte
    except ModuleNotFoundError:
        pass
    venv = home / "venv"
    python = venv / "bin" / "python"
    if os.environ.get("SAMEKEY_MEASURE_VENV"):
        stop(f"pyte is missing even in {venv}")
    os.environ["SAMEKEY_MEASURE_VENV"] = "1"
    there = python.exists() and subprocess.run([python, "-c", "import pyte"], check=False).returncode == 0
    if there:
        os.execv(python, [str(python), *sys.argv])
    print(f"pyte is missing: making {venv}", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "pyte"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or b""
        stop(f"pyte cannot be installed ({error}) {said.decode(errors='replace')[-300:]}")
    os.execv(python, [str(python), *sys.argv])


class Screen:
    """A program in a pseudo-terminal."""

    def __init__(self, pyte, argv, env):
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.ByteStream(self.screen)
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        os.set_blocking(self.fd, False)
        self.gone, self.heard, self.rest = False, self.began, b""

    def text(self):
        return "\n".join(self.screen.display)

    def rows(self):
        """The tokens of the list, top to bottom (the detail shows whole ids)."""
        return TOKEN.findall(self.text())

    def selected(self):
        """The token under the cursor."""
        line = next((line for line in self.screen.display if line.startswith("▸")), "")
        return TOKEN.findall(line)[:1]

    def read(self, patience):
        """Takes what there is. Answers when it arrived, or nothing."""
        if not select.select([self.fd], [], [], patience)[0]:
            return None
        try:
            got = os.read(self.fd, 1 << 16)
        except OSError:
            got = b""
        if not got:
            self.gone = True
            return None
        at = self.heard = time.perf_counter()
        # Sequences that pyte does not know would be drawn as text.
        got = self.rest + got
        cut = got.rfind(b"\x1b", max(0, len(got) - 40))
        whole = cut < 0 or re.match(rb"\x1b(\[[0-9;?<>=:]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[^\[\]])", got[cut:])
        got, self.rest = (got, b"") if whole else (got[:cut], got[cut:])
        self.stream.feed(re.sub(rb"\x1b\[[<>=][0-9;]*[a-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\?2026[hl]", b"", got))
        return at

    def wait(self, shows, since, patience=20.0):
        """Milliseconds from `since` until the screen shows it."""
        end = time.perf_counter() + patience
        if shows(self):
            return (time.perf_counter() - since) * 1e3
        while time.perf_counter() < end and not self.gone:
            at = self.read(0.01)
            if at is not None and shows(self):
                return (at - since) * 1e3
        print(f"--- waited in vain; the screen:\n{self.text()}\n---", file=sys.stderr)
        stop("the screen never showed what was waited for")

    def key(self, keys, shows):
        since = time.perf_counter()
        os.write(self.fd, keys.encode())
        return self.wait(shows, since)

    def type(self, keys):
        os.write(self.fd, keys.encode())
        self.pause(0.15)

    def pause(self, seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and not self.gone:
            self.read(max(0.0, end - time.perf_counter()))

    def cpu(self):
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def quit(self):
        os.write(self.fd, b"q")
        end = time.perf_counter() + 8
        while not self.gone and time.perf_counter() < end:
            self.read(0.05)
        if not self.gone:
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Traffic:
    """Refunds that other processes ask for, a few a second, until told to stop."""

    def __init__(self, binary, env, every):
        self.binary, self.env, self.every, self.asked = binary, env, every, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        mark = f"{int(time.time()):x}"
        while not self.over.wait(self.every):
            self.asked += 1
            order = f"M{mark}-{self.asked}"
            argv = [self.binary, "submit", "issue_refund", "--arg", f"order_id={order}", "--arg", "amount_cents=1500", "--arg", "currency=usd"]
            subprocess.run(argv, env=self.env, check=False, stdout=subprocess.DEVNULL)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Figures:
    def __init__(self):
        self.missed = 0
        print(f"{'':26}{'p50':>10}{'p99':>10}   aim")

    def line(self, name, values, unit, aim):
        values = sorted(values)
        p50 = statistics.median(values)
        p99 = values[min(len(values) - 1, int(len(values) * 0.99))]
        kept = p99 <= aim
        self.missed += not kept
        word = "" if kept else "   MISSED"
        print(f"{name:26}{p50:10.1f}{p99:10.1f}   <= {aim} {unit} (n={len(values)}){word}", flush=True)


def make(pyte, binary, ledger, rows, env):
    print(f"making {ledger} with {rows} rows", file=sys.stderr)
    demo = Screen(pyte, [binary, "demo", "--rows", str(rows), "--keep", str(ledger)], env)
    demo.wait(useful, demo.began, 3600)
    # Bound to its simulator by the first refund that is sent.
    demo.pause(8)
    demo.quit()


def simulator(binary, ledger, env):
    """The provider that the ledger is bound to, at its old address."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as db:
        stamped = db.execute("SELECT origin, mode FROM stamps").fetchone()
    if stamped is None or stamped[1] != "simulator":
        stop(f"{ledger} is not a demo's ledger")
    address = stamped[0].removeprefix("http://")
    sim = subprocess.Popen([binary, "sim", "--listen", address, "--latency", "150ms"], env=env, stdout=subprocess.PIPE, text=True)
    if not sim.stdout.readline():
        stop(f"the simulated provider cannot listen on {address}; remove {ledger} and try again")
    return sim, stamped[0]


def home_of(ledger, origin, base):
    """An environment in which samekey finds this ledger and provider, and nothing else."""
    config = ledger.with_suffix(".toml")
    config.write_text(f'[providers.stripe]\nbase_url = "{origin}"\n')
    return {**base, "SAMEKEY_LEDGER": f"sqlite:{ledger}", "SAMEKEY_CONFIG": str(config), "STRIPE_API_KEY": KEY}


def useful(screen):
    return len(screen.rows()) >= 5


def moved(screen):
    """The cursor is on another row than now."""
    before = screen.selected()
    return lambda s: s.selected() not in (before, [])


def starts(figures, pyte, binary, env):
    times = []
    for _ in range(7):
        screen = Screen(pyte, [binary], env)
        times.append(screen.wait(useful, screen.began))
        screen.pause(0.2)
        screen.quit()
    figures.line("first useful screen", times, "ms", 120)


def keys(figures, screen):
    screen.key("6", useful)
    screen.pause(0.5)
    down, ends, tabs, filters = [], [], [], []
    for _ in range(60):
        down.append(screen.key("\x1b[6~", moved(screen)))
        screen.pause(0.1)
    figures.line("page down", down, "ms", 16)
    for _ in range(12):
        for key in ("G", "gg"):
            ends.append(screen.key(key, moved(screen)))
            screen.pause(0.15)
    figures.line("end and beginning", ends, "ms", 16)
    for _ in range(8):
        for key in "523461":
            before = screen.rows()
            tabs.append(screen.key(key, lambda s, before=before: s.rows() not in (before, []) and useful(s)))
            screen.pause(0.2)
    figures.line("tab", tabs, "ms", 16)
    screen.type("6")
    for n in range(24):
        order = f"P{n * 997:07}"
        for text in (f"order:{order}", order.lower()):
            screen.type("/" + text)
            filters.append(screen.key("\r", lambda s, order=order: len(set(s.rows())) == 1 and order in s.text()))
            screen.pause(0.1)
            screen.type("\x1b")
            screen.wait(useful, time.perf_counter())
    figures.line("filter", filters, "ms", 16)


def changes(figures, screen, ledger):
    """A tool that nobody has, paused by another process: its reason stands on the screen."""
    db = sqlite3.connect(ledger, timeout=30, isolation_level=None)
    circuit = '{"failures":[],"state":"closed","denied":[]}'
    db.execute("INSERT OR REPLACE INTO tool_state VALUES ('measured', 'measure', 'begin', ?)", (circuit,))
    times = []
    for n in range(60):
        screen.pause(0.11 + 0.013 * (n % 9))
        mark = f"mark{n}."
        db.execute("UPDATE tool_state SET paused_reason = ? WHERE tool = 'measured'", (mark,))
        times.append(screen.wait(lambda s, mark=mark: mark in s.text(), time.perf_counter()))
    db.execute("DELETE FROM tool_state WHERE tool = 'measured'")
    db.close()
    figures.line("change to screen", times, "ms", 50)


def idle(figures, screen):
    screen.type("1")
    screen.pause(25)
    shares = []
    for _ in range(6):
        cpu, at = screen.cpu(), time.perf_counter()
        screen.pause(10)
        shares.append((screen.cpu() - cpu) / (time.perf_counter() - at) * 100)
    figures.line("idle", shares, "% of a core", 0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--ledger", type=Path, help="made where it is not there; kept")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/samekey")
    parser.add_argument("--every", type=float, default=0.25, help="seconds between two refunds asked for")
    args = parser.parse_args()
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "samekey-measure"
    home.mkdir(parents=True, exist_ok=True)
    pyte = with_pyte(home)
    if not args.binary.exists():
        stop(f"there is no {args.binary}; cargo build --release makes it")
    binary = str(args.binary.resolve())
    ledger = (args.ledger or home / f"{args.rows}.db").resolve()
    base = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    if not ledger.exists():
        make(pyte, binary, ledger, args.rows, base)
    sim, origin = simulator(binary, ledger, base)
    try:
        env = home_of(ledger, origin, base)
        figures = Figures()
        with Traffic(binary, env, args.every) as traffic:
            starts(figures, pyte, binary, env)
            screen = Screen(pyte, [binary], env)
            screen.wait(useful, screen.began)
            screen.pause(2)
            asked = traffic.asked
            keys(figures, screen)
            changes(figures, screen, ledger)
            asked = traffic.asked - asked
        print(f"{'(calls meanwhile: ' + str(asked) + ')':26}")
        idle(figures, screen)
        figures.line("memory", [screen.memory()], "MB", 60)
        screen.quit()
    finally:
        sim.terminate()
        sim.wait()
    sys.exit(1 if figures.missed else 0)


if __name__ == "__main__":
    main()
