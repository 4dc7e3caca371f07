// Runs one count of the audit in Node. The subject is on stdin, as JSON.

globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const parts = await import("../../../../../edge/try_page/parts.js");
const { count } = await import("./audit.js");
const { readFileSync } = await import("node:fs");
process.stdout.write(JSON.stringify(count(JSON.parse(readFileSync(0, "utf8")), parts)));
