// Connects to the servers on standard input with the client of the TypeScript SDK, whose folder is the first argument.
const { createRequire } = require("node:module");
const { readFileSync } = require("node:fs");
const sdk = createRequire(process.argv[2] + "/");
const { Client, StreamableHTTPClientTransport } = sdk("@modelcontextprotocol/client");
const { StdioClientTransport } = sdk("@modelcontextprotocol/client/stdio");

const modes = { legacy: "legacy", modern: { pin: "2026-07-28" } };
const transports = {
  stdio: ({ command: [program, ...args], environment }) =>
    new StdioClientTransport({ command: program, args, env: { ...process.env, ...environment } }),
  http: ({ url, token }) =>
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }),
};

async function see(server, transport, era) {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: modes[era] } });
  await client.connect(transports[transport](server));
  const { tools } = await client.listTools();
  const result = await client.callTool({ name: server.tool, arguments: server.arguments });
  const revision = client.getNegotiatedProtocolVersion();
  await client.close();
  const { text } = result.content[0];
  return { name: server.name, transport, era, revision, tools: tools.map((tool) => tool.name), is_error: Boolean(result.isError), text };
}

async function main() {
  const waiting = [];
  for (const server of JSON.parse(readFileSync(0, "utf8"))) {
    if (server.stdio_era) waiting.push([server, "stdio", server.stdio_era]);
    for (const era of Object.keys(modes)) waiting.push([server, "http", era]);
  }
  const seen = [];
  const worker = async () => {
    while (waiting.length) seen.push(await see(...waiting.shift()));
  };
  await Promise.all([worker(), worker(), worker()]);
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
