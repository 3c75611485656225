// Drives an ACP agent with the client of the published SDK, and prints what came of it as one line of JSON.
//
//   node client.mjs SDK_DIR CWD AGENT [ARGS…]
//
// Every message that passes, either way, is held against the SDK's own schema.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { PassThrough, Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdkDir, cwd, agent, ...args] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${sdkDir}/${file}`).href);
const { client, methods, ndJsonStream, RequestError } = await load("dist/v1/stable/acp.js");
const schema = await load("dist/v1/schema/zod.gen.js");

const requests = {
  initialize: [schema.zInitializeRequest, schema.zInitializeResponse],
  "session/new": [schema.zNewSessionRequest, schema.zNewSessionResponse],
  "session/load": [schema.zLoadSessionRequest, schema.zLoadSessionResponse],
  "session/list": [schema.zListSessionsRequest, schema.zListSessionsResponse],
  "session/prompt": [schema.zPromptRequest, schema.zPromptResponse],
  "session/set_mode": [schema.zSetSessionModeRequest, schema.zSetSessionModeResponse],
  "session/set_config_option": [schema.zSetSessionConfigOptionRequest, schema.zSetSessionConfigOptionResponse],
};
const notifications = {
  "session/update": schema.zSessionNotification,
  "session/cancel": schema.zCancelNotification,
};

const waiting = new Map();
let checked = 0;
function check(line) {
  const message = JSON.parse(line);
  if (message.method && "id" in message) {
    waiting.set(message.id, requests[message.method]);
    requests[message.method][0].parse(message.params);
  } else if (message.method) {
    notifications[message.method].parse(message.params);
  } else if (message.error) {
    schema.zError.parse(message.error);
  } else {
    waiting.get(message.id)[1].parse(message.result);
  }
  checked += 1;
}
function checkedCopy(stream) {
  createInterface({ input: stream.pipe(new PassThrough()) }).on("line", (line) => {
    try {
      check(line);
    } catch (error) {
      console.error(`not in the schema: ${line}\n${error}`);
      process.exit(1);
    }
  });
}

const child = spawn(agent, args, { stdio: ["pipe", "pipe", "inherit"] });
const toAgent = new PassThrough();
toAgent.pipe(child.stdin);
checkedCopy(toAgent);
checkedCopy(child.stdout);
const stream = ndJsonStream(Writable.toWeb(toAgent), Readable.toWeb(child.stdout.pipe(new PassThrough())));

const updates = [];
let heard = () => {};
const said = (text) =>
  new Promise((resolve) => {
    heard = () => updates.some((update) => update.content?.text?.includes(text)) && resolve();
    heard();
  });

const app = client({ name: "test" }).onNotification(methods.client.session.update, ({ params }) => {
  updates.push(params.update);
  heard();
});

const report = await app.connectWith(stream, async (ctx) => {
  const hello = await ctx.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: {},
    clientInfo: { name: "test", version: "1" },
  });
  const { sessionId, configOptions } = await ctx.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const prompt = (text) => ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const first = await prompt("tell me");
  await ctx.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  const set = await ctx.request(methods.agent.session.setConfigOption, {
    sessionId,
    configId: "model",
    value: "gpt-5",
  });
  const failure = await prompt("fail please").catch((error) => error);
  const hanging = prompt("hang please");
  await said("hanging");
  await ctx.notify(methods.agent.session.cancel, { sessionId });
  const cancelled = await hanging;
  const list = await ctx.request(methods.agent.session.list, { cwd });
  await ctx.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  const last = await prompt("once more");
  return {
    agent: hello.agentInfo.name,
    options: configOptions.map((option) => option.id),
    model: set.configOptions.find((option) => option.id === "model").currentValue,
    stops: [first.stopReason, cancelled.stopReason, last.stopReason],
    failure: failure instanceof RequestError ? [failure.code, failure.message] : String(failure),
    listed: list.sessions.map((session) => session.sessionId === sessionId),
    kinds: [...new Set(updates.map((update) => update.sessionUpdate))].sort(),
  };
});
child.stdin.end();
const code = await new Promise((resolve) => child.once("exit", resolve));
console.log(JSON.stringify({ ...report, checked, code }));
process.exit(0);
