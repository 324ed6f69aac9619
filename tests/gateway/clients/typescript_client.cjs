// Calls tools of the servers on standard input with both clients of the TypeScript SDK, whose folder is the first argument.
// Version 1 speaks the revisions with handshake; most programs that agents run in are built on it.
const { createRequire } = require("node:module");
const { readFileSync } = require("node:fs");
const sdk = createRequire(process.argv[2] + "/");
const second = { ...sdk("@modelcontextprotocol/client"), ...sdk("@modelcontextprotocol/client/stdio") };
const first = {
  ...sdk("@modelcontextprotocol/sdk/client/index.js"),
  ...sdk("@modelcontextprotocol/sdk/client/stdio.js"),
  ...sdk("@modelcontextprotocol/sdk/client/streamableHttp.js"),
};
const clients = {
  first: [first, {}],
  legacy: [second, { versionNegotiation: { mode: "legacy" } }],
  modern: [second, { versionNegotiation: { mode: { pin: "2026-07-28" } } }],
};
const AT_ONCE = 3;

function transport({ StdioClientTransport, StreamableHTTPClientTransport }, server, kind) {
  if (kind === "http") {
    const requestInit = { headers: { Authorization: `Bearer ${server.token}` } };
    return new StreamableHTTPClientTransport(new URL(server.url), { requestInit });
  }
  const [command, ...args] = server.command;
  return new StdioClientTransport({ command, args, env: { ...process.env, ...server.environment } });
}

async function call(client, { tool, arguments: given }) {
  try {
    const result = await client.callTool({ name: tool, arguments: given });
    const text = result.content.filter((block) => block.type === "text").map((block) => block.text)[0] ?? "";
    const structured = result.structuredContent !== undefined;
    return { is_error: Boolean(result.isError), text, structured, code: null };
  } catch (error) {
    return { is_error: true, text: error.message, structured: false, code: error.code ?? 0 };
  }
}

async function see(server, kind, era) {
  const [library, options] = clients[era];
  const client = new library.Client({ name: "test", version: "1" }, options);
  const connection = transport(library, server, kind);
  await client.connect(connection);
  const { tools } = await client.listTools();
  const answers = [];
  for (const each of server.calls) answers.push(await call(client, each));
  const revision = era === "first" ? null : client.getNegotiatedProtocolVersion(); // version 1 does not tell
  await client.close();
  return { name: server.name, transport: kind, era, revision, tools: tools.map((tool) => tool.name), answers };
}

async function main() {
  const waiting = [];
  for (const server of JSON.parse(readFileSync(0, "utf8"))) {
    for (const [kind, era] of server.routes) waiting.push([server, kind, era]);
  }
  const seen = [];
  const worker = async () => {
    while (waiting.length) seen.push(await see(...waiting.shift()));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
