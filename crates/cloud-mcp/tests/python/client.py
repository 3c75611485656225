"""A client of MCP's Python SDK that creates an agent and collects it; prints what it saw as JSON.

client.py stdio PROGRAM        with CURSOR_API_KEY and CURSOR_API_URL in the environment
client.py http URL             with BEARER in the environment
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

REPOSITORY = {"repository": "https://github.com/acme/app"}


async def visit(server, **options):
    report = {}
    async with Client(server, **options) as client:
        report["protocol"] = str(client.protocol_version)
        report["server"] = client.server_info.name
        tools = (await client.list_tools()).tools
        report["tools"] = [tool.name for tool in tools]
        report["schemas"] = all(tool.output_schema for tool in tools)

        # The client validates structured content against the output schema of the tool.
        order = {"prompt": {"text": "Fix it"}, "model": "default", "source": REPOSITORY}
        made = await client.call_tool("createAgent", order)
        id = made.structured_content["id"]
        report["created"] = [made.is_error, id.startswith("bc-"), id in made.content[0].text]

        seen = []

        async def progress(done, total, message):
            seen.append(message)

        waited = await client.call_tool(
            "createAndWait", {**order, "pollIntervalMs": 250}, progress_callback=progress
        )
        report["waited"] = waited.structured_content["status"]
        report["progress"] = len(seen) > 0 and all(isinstance(word, str) for word in seen)

        page = await client.call_tool("listAgents", {"limit": 10})
        report["listed"] = len(page.structured_content["agents"])
        summary = await client.call_tool("summarizeAgents", {})
        report["total"] = summary.structured_content["totals"]["totalAgents"]

        wrong = await client.call_tool("createAgent", {"prompt": {"text": ""}, "model": "default", "source": REPOSITORY})
        report["wrong"] = [wrong.is_error, wrong.structured_content["error"]["field"]]
        missing = await client.call_tool("getAgent", {"id": "bc-none"})
        report["missing"] = [missing.is_error, missing.structured_content["error"]["status"]]
    return report


async def main():
    kind, where = sys.argv[1:3]
    if kind == "stdio":
        names = ("CURSOR_API_KEY", "CURSOR_API_URL", "PATH", "HOME")
        environment = {name: os.environ[name] for name in names if name in os.environ}
        reports = [await visit(StdioServerParameters(command=where, args=["stdio"], env=environment))]
    else:
        headers = {"Authorization": "Bearer " + os.environ["BEARER"]}
        reports = []
        # By today's protocol, which has no handshake, and by the one with it.
        for mode in ("auto", "legacy"):
            async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
                reports.append(await visit(streamable_http_client(where, http_client=http), mode=mode))
    print(json.dumps(reports))


asyncio.run(main())
