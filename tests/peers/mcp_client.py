"""The official MCP Python SDK as a client of `samekey mcp` (a pipe) and of `samekey serve` (HTTP).
usage: mcp_client.py SAMEKEY

Prints `ok NAME` for every check that holds and `FAILED NAME: why` for every one that does not.
"""

import asyncio
import importlib.metadata
import json
import sys

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from kit import Home, check, leave

SAMEKEY = sys.argv[1]


def refund(order, amount=3800, **more):
    return {"order_id": order, "amount_cents": amount, "currency": "usd", **more}


async def raised(call):
    try:
        return await call
    except Exception as error:  # what it is, is the check
        return error


async def checks(way, client):
    """What holds over a pipe and over HTTP alike."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    check(f"{way}: the tools are listed", {"issue_refund", "operation_status"} <= set(listed), list(listed))
    tool = listed["issue_refund"]
    check(f"{way}: its arguments have a schema", "order_id" in tool.input_schema.get("properties", {}), tool.input_schema)
    hints = tool.annotations
    check(
        f"{way}: its annotations are honest",
        (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        == (False, True, True, True),
        hints,
    )
    check(f"{way}: operation_status only reads", listed["operation_status"].annotations.read_only_hint is True)
    words = json.dumps(tool.model_dump(mode="json"))
    check(f"{way}: no tool asks for a key (R60)", "idempotency" not in words.replace("idempotentHint", ""), words)

    order = f"{way}-1"
    first = (await client.call_tool("issue_refund", refund(order), meta={"call_id": f"{way}-a"})).structured_content
    check(f"{way}: a refund is made", first["status"] == "refunded" and first["refund_id"].startswith("re_"), first)
    check(f"{way}: the sentence for the customer is there (R57)", bool(first.get("customer_message")), first)
    check(f"{way}: no key is shown (R60)", "key" not in json.dumps(first), first)
    again = (await client.call_tool("issue_refund", refund(order), meta={"call_id": f"{way}-a"})).structured_content
    check(f"{way}: the same call has the same answer", again == first, again)
    other = (await client.call_tool("issue_refund", refund(order))).structured_content
    check(
        f"{way}: asked again under a new id it is the stored result (R62)",
        other.get("repeat") is True and other["operation_id"] == first["operation_id"],
        other,
    )
    mixed = await raised(client.call_tool("issue_refund", refund(order, 100), meta={"call_id": f"{way}-a"}))
    told = isinstance(mixed, Exception) or mixed.is_error
    check(f"{way}: the same id with other arguments is refused", told, mixed)
    wrong = (await client.call_tool("issue_refund", {"order_id": order})).structured_content
    check(f"{way}: missing arguments are one sentence", wrong["status"] == "rejected" and "currency" in wrong["reason"], wrong)
    status = (await client.call_tool("operation_status", {"operation_id": first["operation_id"]})).structured_content
    check(f"{way}: the operation tells the present", status["status"] == "succeeded", status)
    check(f"{way}: and shows no key", "idempotency_key" not in status, status)
    unknown = await raised(client.call_tool("pay_everybody", {}))
    check(f"{way}: a tool that nobody has is an error", isinstance(unknown, Exception) or unknown.is_error, unknown)
    together = await asyncio.gather(*(client.call_tool("issue_refund", refund(f"{way}-2")) for _ in range(8)))
    rows = {said.structured_content["operation_id"] for said in together}
    check(f"{way}: eight at once are one operation", len(rows) == 1, rows)


async def main():
    print(f"mcp {importlib.metadata.version('mcp')}", flush=True)
    with Home(SAMEKEY, "desk") as home:
        pipe = StdioServerParameters(command=SAMEKEY, args=["mcp"], env=home.env)
        async with Client(pipe, read_timeout_seconds=60) as client:
            await checks("pipe", client)
        url = "http://" + home.start("serve", "--listen", "127.0.0.1:0") + "/mcp"
        bearer = {"Authorization": f"Bearer {home.token}"}
        async with httpx2.AsyncClient(headers=bearer, timeout=60) as http:
            async with Client(streamable_http_client(url, http_client=http), read_timeout_seconds=60) as client:
                await checks("http", client)

        async def without():
            async with Client(url, read_timeout_seconds=20) as client:
                await client.list_tools()

        refused = await raised(without())
        check("http: without a token nothing is listed (R98)", isinstance(refused, BaseException), refused)
        for order in ("pipe-1", "pipe-2", "http-1", "http-2"):
            check(f"{order} was refunded once", home.refunds(order) == 1, home.refunds(order))
        home.check_ledger()
    leave()


if __name__ == "__main__":
    asyncio.run(main())
