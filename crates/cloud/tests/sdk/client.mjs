// Drives the fake with Cursor's own SDK, and prints what came of it as one line of JSON.
//
//   CURSOR_BACKEND_URL=URL CURSOR_API_KEY=KEY node client.mjs SDK_DIR
import { pathToFileURL } from "node:url";

const [sdkDir] = process.argv.slice(2);
const { Agent, Cursor } = await import(pathToFileURL(`${sdkDir}/dist/esm/index.js`).href);
const base = process.env.CURSOR_BACKEND_URL;
const report = {};

const control = (body) => fetch(`${base}/fake/control`, { method: "POST", body: JSON.stringify(body) });

/** What a run says, as the SDK tells it: by its messages and by its deltas. */
async function hear(agent, prompt) {
  const deltas = [];
  const run = await agent.send(prompt, { onDelta: ({ update }) => void deltas.push(update) });
  const messages = [];
  for await (const message of run.stream()) messages.push(message);
  const result = await run.wait();
  const text = (list, pick) => list.map(pick).filter(Boolean).join("");
  return {
    run: run.id,
    status: result.status,
    result: result.result,
    branch: result.git?.branches?.[0]?.branch,
    pr: result.git?.branches?.[0]?.prUrl,
    said: text(messages, (m) => m.type === "assistant" && m.message.content.map((c) => c.text).join("")),
    deltas: text(deltas, (d) => d.type === "text-delta" && d.text),
    tools: messages.filter((m) => m.type === "tool_call").map((m) => `${m.name} ${m.status}`),
    kinds: [...new Set(deltas.map((d) => d.type))].sort(),
  };
}

const options = {
  cloud: { repos: [{ url: "https://github.com/acme/app", startingRef: "main" }], autoCreatePR: true, metadata: { by: "sdk" } },
  model: { id: "gpt-5" },
};

report.me = (await Cursor.me()).userEmail;
report.models = (await Cursor.models.list()).map((model) => model.id);
report.repositories = (await Cursor.repositories.list()).length;

const agent = await Agent.create(options);
report.whole = await hear(agent, "Fix the parser, naïvely ✓");
report.minted = agent.agentId.startsWith("bc-");

// Cut inside an event, and inside a character: both are taken up again.
report.cut = [];
for (const bytes of [1500, 2500]) {
  await control({ faults: [{ path: "/stream", times: 1, what: { cut_answer: { bytes } } }] });
  report.cut.push(await hear(agent, "Fix the parser, naïvely ✓"));
}

const listed = await Agent.list({ runtime: "cloud", limit: 5 });
report.listed = listed.items.map((item) => [item.agentId === agent.agentId, item.status, item.repos]);
report.more = typeof listed.nextCursor;
report.got = (await Agent.get(agent.agentId)).name;

// A follow-up that hangs, until it is cancelled; another one meanwhile is refused.
const hanging = await agent.send("hang, please");
report.busy = await agent.send("too early").then(() => "sent", (error) => error.name);
await hanging.cancel();
report.cancelled = (await hanging.wait()).status;
report.runs = (await Agent.listRuns(agent.agentId, { runtime: "cloud" })).items.length;

report.artifacts = (await agent.listArtifacts()).map((item) => item.path);
report.artifact = String(await agent.downloadArtifact(report.artifacts[0]));

report.refused = await Cursor.me({ apiKey: "key_wrong" }).then(() => "let in", (error) => error.name);
await control({ faults: [{ path: "/v1/me", times: 1, what: { refuse: { status: 429, code: "rate_limited", retry_after: "1" } } }] });
report.limited = await Cursor.me().then(() => "let in", (error) => error.name);

await Agent.archive(agent.agentId);
report.archived = (await Agent.get(agent.agentId)).archived;
await Agent.unarchive(agent.agentId);
await Agent.delete(agent.agentId);
report.deleted = await Agent.get(agent.agentId).then(() => "there", (error) => error.name);

process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(0);
