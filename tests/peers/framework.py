"""An agent built with LangGraph whose node is killed at every bad moment and run again from its first
line, as the framework does: a graph is atomic about its own state, and the call that the node made has
happened all the same (R65, R67, R68). usage: framework.py SAMEKEY [CRASHES] [SEED]

The same graph, the same crashes: once the node calls the tool through samekey, once it calls the provider
by itself with a fresh key per tool call. Each crash is a SIGKILL of the process that runs the graph; the
next process goes on from the checkpoint. Prints `ok NAME` for every check that holds, `FAILED NAME: why`
for every one that does not, and one line with both figures.
"""

import fcntl
import http.client
import importlib.metadata
import json
import os
import random
import signal
import sqlite3
import struct
import sys
import termios
import time
import uuid
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from kit import Home, check, leave

SAMEKEY = sys.argv[1]
CRASHES = int(sys.argv[2]) if len(sys.argv) > 2 else 20
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 4417
AMOUNT = 3800
# Where the node dies: before its request, with the request on its way, with the answer in its hands.
PLACES = ("before", "sent", "answered")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def post(address, path, headers, body, dies):
    """One request; dies at `dies`, if anywhere."""
    if dies == "before":
        die()
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", path, body, headers)
    if dies == "sent":
        # Written to the socket: the other side reads it, whoever is gone meanwhile. Until it has, so that
        # no order counts on luck.
        while unread(connection.sock):
            time.sleep(0.002)
        die()
    reply = connection.getresponse()
    said = json.loads(reply.read())
    connection.close()
    if dies == "answered":
        die()
    return reply.status, said


def unread(sock):
    """Bytes that the other side's system has not acknowledged."""
    packed = fcntl.ioctl(sock, termios.TIOCOUTQ, struct.pack("i", 0))
    return struct.unpack("i", packed)[0]


class State(TypedDict, total=False):
    order: str
    call: str
    answer: dict


def graph(call_tool):
    """decide → refund → tell. A model makes a new call id each time it is run."""
    built = StateGraph(State)
    built.add_node("decide", lambda state: {"order": state["order"]})
    built.add_node("refund", lambda state: {"answer": call_tool(state["order"])})
    built.add_node("tell", lambda state: {"call": "told"})
    built.add_edge(START, "decide")
    built.add_edge("decide", "refund")
    built.add_edge("refund", "tell")
    built.add_edge("tell", END)
    return built


def through_samekey(gateway, token, dies):
    def call_tool(order):
        # The first line of the node: a new call id, run after run.
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Idempotency-Key": f'"toolu_{uuid.uuid4().hex}"',
            "Prefer": "wait=30",
        }
        arguments = {"order_id": order, "amount_cents": AMOUNT, "currency": "usd"}
        body = json.dumps({"tool": "issue_refund", "arguments": arguments})
        status, said = post(gateway, "/v1/tool-calls", headers, body, dies)
        if status != 200:
            raise RuntimeError(f"{status}: {said}")
        return said

    return call_tool


def straight(provider, dies):
    def call_tool(order):
        headers = {
            "Authorization": "Bearer sk_test_peer",
            "Content-Type": "application/x-www-form-urlencoded",
            "Idempotency-Key": str(uuid.uuid4()),
        }
        body = f"payment_intent=pi_order_{order}&amount={AMOUNT}"
        status, said = post(provider, "/v1/refunds", headers, body, dies)
        if status != 200:
            raise RuntimeError(f"{status}: {said}")
        return {"status": "refunded", "refund_id": said["id"]}

    return call_tool


def run(path, order, call_tool):
    """One process of the agent, forked, so that the framework is loaded once. True: it came to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with SqliteSaver.from_conn_string(path) as saver:
                app = graph(call_tool).compile(checkpointer=saver)
                config = {"configurable": {"thread_id": order}}
                # Nothing is given anew where the graph goes on from its checkpoint.
                known = app.get_state(config).next
                ended = app.invoke(None if known else {"order": order}, config)
                code = 0 if ended.get("call") == "told" else 1
        except BaseException as error:
            print(f"the agent failed: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    _, ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended)


def answer(path, order):
    with SqliteSaver.from_conn_string(path) as saver:
        app = graph(lambda _: {}).compile(checkpointer=saver)
        return app.get_state({"configurable": {"thread_id": order}}).values.get("answer", {})


def experiment(name, home, plan, tool_of):
    """Every order with its crashes, then to its end. How many refunds were one too many."""
    path = os.path.join(home.dir, f"{name}.checkpoints")
    doubled, answers, kills = 0, [], 0
    for n, crashes in enumerate(plan):
        order = f"{name}-{n}"
        for place in crashes:
            code = run(path, order, tool_of(place))
            kills += code == -signal.SIGKILL
        code = run(path, order, tool_of(None))
        if code != 0:
            check(f"{name}: the graph of {order} came to its end", False, code)
        answers.append(answer(path, order).get("status"))
        doubled += max(0, home.refunds(order) - 1)
    return doubled, answers, kills


def main():
    lots = random.Random(SEED)
    # One to three crashes an order, the rarest moment as often as the others.
    plan, left = [], CRASHES
    while left > 0:
        crashes = [lots.choice(PLACES) for _ in range(min(left, lots.randint(1, 3)))]
        plan.append(crashes)
        left -= len(crashes)
    print(f"langgraph {importlib.metadata.version('langgraph')}", flush=True)
    with Home(SAMEKEY, "graph") as home:
        gateway = home.start("serve", "--listen", "127.0.0.1:0")
        crash(home, gateway, plan)
    leave()


def crash(home, gateway, plan):
    began = time.monotonic()
    ours, answers, kills = experiment(
        "samekey", home, plan, lambda dies: through_samekey(gateway, home.token, dies)
    )
    check("every planned crash happened", kills == CRASHES, kills)
    check("every answer is refunded", set(answers) == {"refunded"}, answers)
    check("through samekey no refund was made twice (R65, R67, R68)", ours == 0, ours)
    calls, rows = counts(home.ledger)
    at = [place for crashes in plan for place in crashes]
    # A request whose sender is gone may not be taken: nobody was told so.
    told = at.count("answered") + len(plan)
    most = told + at.count("sent")
    check("every call that was answered was kept (R83)", told <= calls <= most, (told, calls, most))
    check("one row an order, whatever the node did", rows == len(plan), (rows, len(plan)))
    home.check_ledger()
    naive, _, kills = experiment("naive", home, plan, lambda dies: straight(home.provider, dies))
    check("the same crashes happened without it", kills == CRASHES, kills)
    least, most = at.count("answered"), len(at) - at.count("before")
    check("without it a crash after the request pays once more", least <= naive <= most, (least, naive, most))
    took = time.monotonic() - began
    print(
        f"figures: {CRASHES} crashes of the node over {len(plan)} orders: {ours} refunds doubled through samekey, "
        f"{naive} without it; {took:.0f} s",
        flush=True,
    )


def counts(ledger):
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as db:
        calls = db.execute("SELECT count(*) FROM tool_calls").fetchone()[0]
        rows = db.execute("SELECT count(*) FROM operations").fetchone()[0]
    return calls, rows


if __name__ == "__main__":
    main()
