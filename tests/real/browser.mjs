// Opens a page in the installed Chromium, runs a script in it, and prints what that comes to, as JSON.
//
//     node browser.mjs INSTALLED SCRATCH PAGE RULES < script
//
// INSTALLED is what `setup` made, SCRATCH an empty folder for the browser's profile, PAGE the address of the page, RULES how
// names are looked up (`--host-resolver-rules`). The script is the body of an async function.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [installed, scratch, page, rules] = process.argv.slice(2);
const script = readFileSync(0, "utf8");
const folder = join(installed, "chromium");
// The package's own arguments switch off the very checks that the tests are about, so these are ours. Nothing here runs pages
// of the network, and root has no sandbox. That newer browsers ask before a page reaches this machine is switched off: others
// do not.
const flags = ["--headless", "--no-sandbox", "--no-zygote", "--disable-gpu", "--no-first-run", "--no-proxy-server",
  "--disable-features=LocalNetworkAccessChecks", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
  `--host-resolver-rules=${rules}`, `--user-data-dir=${scratch}`, "about:blank"];
const env = { ...process.env, HOME: scratch, FONTCONFIG_PATH: join(folder, "fonts"),
  LD_LIBRARY_PATH: [join(folder, "al2023", "lib"), process.env.LD_LIBRARY_PATH].filter(Boolean).join(":") };
const browser = spawn(join(folder, "chromium"), flags, { env, stdio: ["ignore", "ignore", "pipe"] });
let said = "";
const address = new Promise((resolve, reject) => {
  browser.stderr.on("data", (chunk) => {
    said += chunk;
    const found = /DevTools listening on (ws:\S+)/.exec(said);
    if (found) resolve(found[1]);
  });
  browser.on("exit", (code) => reject(new Error(`the browser ended with ${code}: ${said}`)));
  browser.on("error", reject);
});

// The protocol of the developer tools: requests by number, answers, and events for whoever waits for one.
const socket = new WebSocket(await address);
await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
let last = 0;
const asked = new Map();
const events = [];
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.id === undefined) return events.forEach((event) => event(message));
  const { resolve, reject } = asked.get(message.id);
  message.error ? reject(new Error(JSON.stringify(message.error))) : resolve(message.result);
};
const ask = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
  last += 1;
  asked.set(last, { resolve, reject });
  socket.send(JSON.stringify({ id: last, method, params, sessionId }));
});
const event = (method) => new Promise((resolve) => events.push((message) => message.method === method && resolve()));

// A browser that ends meanwhile answers nothing any more.
const gone = new Promise((_, reject) => browser.on("exit", (code, signal) => reject(new Error(`the browser ended with ${code ?? signal}: ${said}`))));
gone.catch(() => {});

const attend = async () => {
  const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
  await ask("Page.enable", {}, sessionId);
  const loaded = event("Page.loadEventFired");
  const { errorText } = await ask("Page.navigate", { url: page }, sessionId);
  if (errorText) throw new Error(`${page}: ${errorText}`);
  await loaded;
  const expression = `(async () => { ${script} })()`;
  const { result, exceptionDetails } = await ask("Runtime.evaluate",
    { expression, awaitPromise: true, returnByValue: true, userGesture: true }, sessionId);
  if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
  return result.value;
};
try {
  const value = await Promise.race([attend(), gone]);
  process.stdout.write(`${JSON.stringify(value)}\n`);
} finally {
  browser.removeAllListeners("exit");
  if (browser.exitCode === null && browser.signalCode === null) {
    const ended = new Promise((resolve) => browser.on("exit", resolve));
    browser.kill("SIGKILL");
    await ended;
  }
}
process.exit(0);
