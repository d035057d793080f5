"""The official Python SDK as a client of `samekey sim`: a program nobody here wrote says whether the
simulator behaves like the provider. usage: simulator.py SAMEKEY

Prints `ok NAME` for every check that holds and `FAILED NAME: why` for every one that does not.
"""

import concurrent.futures
import http.server
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import stripe

SAMEKEY = sys.argv[1]
HOME = tempfile.mkdtemp(prefix="samekey-peer-")
PAYMENT = {"payment_intent": "pi_order_4417", "amount": 3800, "metadata": {"operation_id": "op_1"}}
# The provider breaks its own promise in these: a second refund is what they are for.
BREAKS_ITS_PROMISE = {"ignores-keys", "pruned-key"}
failed = 0
stripe.enable_telemetry = False


def check(name, holds, seen=None):
    global failed
    if holds:
        print(f"ok {name}", flush=True)
    else:
        failed += 1
        print(f"FAILED {name}: {seen!r}", flush=True)


class Sim:
    """A simulator of one's own, gone at the end."""

    def __init__(self, *args):
        command = [SAMEKEY, "sim", *args]
        self.child = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={"HOME": HOME}
        )
        self.base = "http://" + self.child.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def client(self, retries=0, timeout=10, key="sk_test_peer"):
        return stripe.StripeClient(
            key,
            base_addresses={"api": self.base},
            max_network_retries=retries,
            http_client=stripe.RequestsClient(timeout=timeout),
        ).v1

    def state(self):
        with urllib.request.urlopen(self.base + "/_sim/state") as reply:
            return json.load(reply)

    def advance(self, seconds):
        body = json.dumps({"seconds": seconds}).encode()
        urllib.request.urlopen(self.base + "/_sim/advance", body).read()

    def effects(self):
        """Refunds that were made for a client's request."""
        made = [r["_sim"] for r in self.state()["refunds"]]
        return [e for e in made if e["source"] != "external"]


def raised(call):
    try:
        return call()
    except Exception as error:  # what it is, is the check
        return error


def keys_and_errors():
    with Sim() as sim:
        v1 = sim.client()
        options = {"idempotency_key": "K"}
        first = v1.refunds.create(PAYMENT, options)
        check("create", (first.object, first.status, first.amount) == ("refund", "succeeded", 3800), first)
        again = v1.refunds.create(PAYMENT, options)
        headers = again.last_response.headers
        check("replay with the same key", again.id == first.id and headers["idempotent-replayed"] == "true", headers)
        other = raised(lambda: v1.refunds.create({**PAYMENT, "amount": 1}, options))
        check("mismatch raises IdempotencyError", isinstance(other, stripe.IdempotencyError) and other.http_status == 400, other)
        read = v1.refunds.retrieve(first.id)
        check("retrieve", read.metadata["operation_id"] == "op_1", read)
        over = raised(lambda: v1.refunds.create({**PAYMENT, "amount": 100_000}))
        check("too much raises InvalidRequestError for amount", isinstance(over, stripe.InvalidRequestError) and over.param == "amount", over)
        v1.refunds.create({"payment_intent": "pi_order_4417"})
        none = raised(lambda: v1.refunds.create(PAYMENT))
        check("nothing left has its code", getattr(none, "code", None) == "charge_already_refunded", none)
        missing = raised(lambda: v1.refunds.retrieve("re_x"))
        check("missing raises InvalidRequestError", isinstance(missing, stripe.InvalidRequestError) and missing.code == "resource_missing" and missing.request_id.startswith("req_"), missing)
        live = raised(lambda: sim.client(key="sk_live_x").refunds.list())
        check("a wrong key raises AuthenticationError", isinstance(live, stripe.AuthenticationError), live)
        sim.advance(24 * 3600)
        fresh = v1.refunds.create({**PAYMENT, "payment_intent": "pi_order_1"}, options)
        check("after 24 hours a key is new", fresh.id != first.id and fresh.last_response.headers.get("idempotent-replayed") is None, fresh)
    for scenario, kind in [
        ("permission-denied", stripe.PermissionError),
        ("rate-limited", stripe.RateLimitError),
        ("lock-timeout", stripe.RateLimitError),
        ("saved-500-with-effect", stripe.APIError),
        ("bad-gateway", stripe.APIError),
        ("garbled-reply", stripe.APIError),
        ("reset-after-commit", stripe.APIConnectionError),
        ("refused", stripe.InvalidRequestError),
        ("key-mismatch", stripe.IdempotencyError),
    ]:
        with Sim("--scenario", scenario) as sim:
            error = raised(lambda: sim.client().refunds.create(PAYMENT, {"idempotency_key": "K"}))
            check(f"{scenario} raises {kind.__name__}", type(error) is kind, error)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as card:
        card.write("about = 'x'\n[[step]]\neffect = false\nanswer = { status = 402, type = 'card_error', code = 'card_declined' }\n")
        card.flush()
        with Sim("--scenario", card.name) as sim:
            error = raised(lambda: sim.client().refunds.create(PAYMENT))
            check("402 raises CardError", isinstance(error, stripe.CardError) and error.code == "card_declined", error)


def overlap():
    with Sim("--scenario", "overlap-409") as sim:
        options = {"idempotency_key": "K"}
        # Gives up on the held reply by itself.
        first = threading.Thread(target=lambda: raised(lambda: sim.client(timeout=8).refunds.create(PAYMENT, options)))
        first.start()
        while not sim.state()["requests"]:
            time.sleep(0.01)
        second = raised(lambda: sim.client().refunds.create(PAYMENT, options))
        named = getattr(getattr(second, "error", None), "code", None)
        check("overlap is 409", getattr(second, "http_status", None) == 409 and named == "idempotency_key_in_use", second)
        third = raised(lambda: sim.client(retries=10).refunds.create(PAYMENT, options))
        effects = sim.effects()
        check("overlap ends in the same refund", len(effects) == 1 and getattr(third, "id", None) == effects[0]["refund_id"], third)
        first.join()


def paging():
    with Sim() as sim:
        v1 = sim.client()
        made = {v1.refunds.create({"payment_intent": "pi_order_1", "amount": 100}).id for _ in range(120)}
        v1.refunds.create({"payment_intent": "pi_order_2", "amount": 100})
        of_one = {"payment_intent": "pi_order_1", "limit": 50}
        first = v1.refunds.list(of_one)
        check("list", len(first.data) == 50 and first.has_more, first.has_more)
        paged = [r.id for r in first.auto_paging_iter()]
        check("page through 120 refunds", len(paged) == 120 and set(paged) == made, len(paged))
        newest = paged[0]
        check("newest first", v1.refunds.list({"limit": 2}).data[1].id == newest, newest)
        events = v1.events.list({"type": "refund.created", "limit": 100})
        told = [e.data.object["id"] for e in events.auto_paging_iter()]
        check("page through the events of 121 refunds", len(told) == 121 and made < set(told), len(told))
        wrong = raised(lambda: v1.refunds.list({"limit": 101}))
        check("101 a page raise InvalidRequestError", isinstance(wrong, stripe.InvalidRequestError), wrong)


class Receiver:
    """Takes webhooks on loopback."""

    def __init__(self):
        got = self.got = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.put((body, self.headers["Stripe-Signature"]))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/webhooks/stripe"

    def next(self):
        return self.got.get(timeout=30)


def webhooks():
    verify = stripe.Webhook.construct_event
    refused = stripe.SignatureVerificationError
    receiver = Receiver()
    both = ["--webhook", receiver.url, "--webhook-secret", "whsec_one", "--webhook-secret", "whsec_two"]
    with Sim("--scenario", "pending-then-failed", *both) as sim:
        made = sim.client().refunds.create(PAYMENT, {"idempotency_key": "K"})
        body, signature = receiver.next()
        for secret in ["whsec_one", "whsec_two"]:
            event = raised(lambda: verify(body, signature, secret))
            check(f"the verifier takes {secret}", getattr(event, "type", None) == "refund.created" and event.data.object["id"] == made.id, event)
        check("the event names our key", event.request["idempotency_key"] == "K", event.request)
        for name, args in [
            ("another secret", (body, signature, "whsec_three")),
            ("another body", (body.replace(b"3800", b"3801"), signature, "whsec_one")),
        ]:
            check(f"the verifier refuses {name}", isinstance(raised(lambda: verify(*args)), refused))
        sim.advance(600)
        body, signature = receiver.next()
        event = raised(lambda: verify(body, signature, "whsec_one"))
        check("a webhook of later is taken too", getattr(event, "type", None) == "refund.failed", event)
    for scenario in ["webhook-wrong-secret", "webhook-old-timestamp"]:
        receiver = Receiver()
        with Sim("--scenario", scenario, "--webhook", receiver.url, "--webhook-secret", "whsec_one") as sim:
            sim.client().refunds.create(PAYMENT)
            body, signature = receiver.next()
            check(f"the verifier refuses {scenario}", isinstance(raised(lambda: verify(body, signature, "whsec_one")), refused))


def retrying(scenario, count):
    """The SDK retries by itself; whatever it tells its caller, one refund is made at most."""
    name = scenario + count
    with Sim("--scenario", name) as sim:
        options = {"idempotency_key": "K"}
        payment = {**PAYMENT, "payment_intent": "pi_order_9"}
        result = raised(lambda: sim.client(retries=2, timeout=2).refunds.create(payment, options))
        effects = sim.effects()
        if scenario in BREAKS_ITS_PROMISE:
            # So that this check is known to see a second refund.
            return name, len(effects) == 2, effects
        if isinstance(result, stripe.Refund):
            return name, [e["refund_id"] for e in effects] == [result.id], (result, effects)
        return name, len(effects) <= 1, (result, effects)


def every_fault():
    listed = subprocess.run([SAMEKEY, "demo", "--list", "--json"], capture_output=True, text=True, env={"HOME": HOME}, check=True)
    names = [s["name"] for s in json.loads(listed.stdout)]
    check("there are scenarios to try", len(names) > 30, names)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        runs = [pool.submit(retrying, name, count) for name in names for count in ["", ":1"]]
        for run in runs:
            name, holds, seen = run.result()
            wanted = "two refunds" if name.split(":")[0] in BREAKS_ITS_PROMISE else "one refund"
            check(f"{wanted} under {name} with automatic retries", holds, seen)


print("stripe", stripe.VERSION, "python", sys.version.split()[0], flush=True)
for part in [keys_and_errors, overlap, paging, webhooks, every_fault]:
    part()
sys.exit(1 if failed else 0)
