// Everything that a page may try against TARGET, with the id of a SESSION that it got hold of. OWN is its own server. Returns
// what came of each attempt, in words.

const call = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "put", arguments: { from: "a page" } } };
const greeting = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {} } };
const body = JSON.stringify(call);
const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const named = { ...json, "mcp-session-id": SESSION, "mcp-protocol-version": "2025-11-25" };
const outcomes = {};
const soon = (what) => new Promise((resolve) => setTimeout(() => resolve(what), 1500));
const attempt = async (name, doing) => {
  try {
    outcomes[name] = String(await Promise.race([doing(), soon("nothing came")]));
  } catch (error) {
    outcomes[name] = `refused: ${error.name}`;
  }
};
const said = async (response) => `${response.type} ${response.status} ${await Promise.race([response.text(), soon("…")])}`;
const fetched = async (url, options) => said(await fetch(url, options));
// Nothing is shown: the build has no way to find fonts for what it would show.
const element = (name, members) => Object.assign(document.createElement(name), { hidden: true }, members);
// What an element loads, as far as the page is told.
const loads = (node, isThere = false) => new Promise((resolve) => {
  if (isThere) document.body.append(node);
  node.onload = () => resolve(`loaded ${node.contentDocument?.body?.textContent ?? ""}`);
  node.onerror = () => resolve("refused: an error event");
  if (!isThere) document.body.append(node);
});
const form = (enctype, fields) => {
  const target = `f${Math.random()}`;
  // It has loaded nothing when it is put in; what counts is what the form brings.
  const frame = loads(element("iframe", { name: target }), true);
  const node = element("form", { action: TARGET, method: "POST", enctype, target });
  for (const [name, value] of Object.entries(fields)) node.append(element("input", { name, value }));
  document.body.append(node);
  node.submit();
  return frame;
};
const xhr = (method, headers, text) => new Promise((resolve) => {
  const request = new XMLHttpRequest();
  request.open(method, TARGET);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.onload = () => resolve(`basic ${request.status} ${request.responseText}`);
  request.onerror = () => resolve("refused: an error event");
  request.send(text);
});
const plain = (type) => new Blob([body], { type });
// A frame without an origin, which tells its parent what came.
const frameless = () => new Promise((resolve) => {
  const script = `fetch(${JSON.stringify(TARGET)}, ${JSON.stringify({ method: "POST", headers: { "content-type": "text/plain" }, body })})
    .then(async (r) => parent.postMessage(r.type + " " + r.status + " " + await r.text(), "*"), (e) => parent.postMessage("refused: " + e.name, "*"))`;
  addEventListener("message", ({ data }) => resolve(data), { once: true });
  document.body.append(element("iframe", { sandbox: "allow-scripts", srcdoc: `<script>${script}</scr` + "ipt>" }));
});

await Promise.all([
  attempt("own page", () => fetched(OWN + "/own")),
  attempt("fetch: a call", () => fetched(TARGET, { method: "POST", headers: json, body })),
  attempt("fetch: a call in a session", () => fetched(TARGET, { method: "POST", headers: named, body })),
  attempt("fetch: a greeting", () => fetched(TARGET, { method: "POST", headers: json, body: JSON.stringify(greeting) })),
  attempt("fetch: with credentials", () => fetched(TARGET, { method: "POST", headers: named, body, credentials: "include" })),
  attempt("fetch: plain text", () => fetched(TARGET, { method: "POST", headers: { "content-type": "text/plain" }, body })),
  attempt("fetch: plain text, unread", () => fetched(TARGET, { method: "POST", mode: "no-cors", body })),
  attempt("fetch: JSON, unread", () => fetched(TARGET, { method: "POST", mode: "no-cors", headers: named, body })),
  attempt("fetch: a form, unread", () => fetched(TARGET, { method: "POST", mode: "no-cors", body: new URLSearchParams({ body }) })),
  attempt("fetch: parts, unread", () => {
    const data = new FormData();
    data.append("x", plain("application/json"));
    return fetched(TARGET, { method: "POST", mode: "no-cors", body: data });
  }),
  attempt("fetch: no type, unread", () => fetched(TARGET, { method: "POST", mode: "no-cors", body: plain("") })),
  attempt("fetch: a type that says two, unread", () =>
    fetched(TARGET, { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain;x=application/json" }, body })),
  attempt("fetch: a typed blob, unread", () => fetched(TARGET, { method: "POST", mode: "no-cors", body: plain("application/json") })),
  attempt("fetch: kept alive", () => fetched(TARGET, { method: "POST", mode: "no-cors", keepalive: true, body })),
  attempt("fetch: a stream", () => fetched(TARGET, { headers: { accept: "text/event-stream", "mcp-session-id": SESSION } })),
  attempt("fetch: a look", () => fetched(TARGET)),
  attempt("fetch: a look, unread", () => fetched(TARGET, { mode: "no-cors" })),
  attempt("fetch: an end of a session", () => fetched(TARGET, { method: "DELETE", headers: { "mcp-session-id": SESSION } })),
  attempt("fetch: put in place", () => fetched(TARGET, { method: "PUT", headers: json, body })),
  attempt("fetch: of a skill", () => fetched(TARGET.replace("/mcp", "/skill/talks/mcp"), { method: "POST", headers: json, body: JSON.stringify(greeting) })),
  attempt("fetch: sent on by its own server", () => fetched(OWN + "/to-target", { method: "POST", headers: json, body })),
  attempt("fetch: sent on, unread", () => fetched(OWN + "/to-target", { method: "POST", mode: "no-cors", body })),
  attempt("xhr: a call", () => xhr("POST", named, body)),
  attempt("xhr: plain text", () => xhr("POST", { "content-type": "text/plain" }, body)),
  attempt("form: plain text that is JSON", () => form("text/plain", { [`${body.slice(0, -3)},"x":"`]: `"}}}` })),
  attempt("form: fields", () => form("application/x-www-form-urlencoded", { body })),
  attempt("form: parts", () => form("multipart/form-data", { body })),
  attempt("beacon: plain text", () => `sent ${navigator.sendBeacon(TARGET, body)}`),
  attempt("beacon: JSON", () => `sent ${navigator.sendBeacon(TARGET, plain("application/json"))}`),
  attempt("beacon: no type", () => `sent ${navigator.sendBeacon(TARGET, plain(""))}`),
  attempt("socket", () => new Promise((resolve) => {
    const socket = new WebSocket(TARGET.replace("http", "ws"));
    socket.onopen = () => { socket.send(body); resolve("opened"); };
    socket.onerror = () => resolve("refused: an error event");
  })),
  attempt("event source", () => new Promise((resolve) => {
    const source = new EventSource(TARGET, { withCredentials: true });
    source.onopen = () => resolve("opened");
    source.onmessage = ({ data }) => resolve(`told ${data}`);
    source.onerror = () => { source.close(); resolve("refused: an error event"); };
  })),
  attempt("frame", () => loads(element("iframe", { src: TARGET }))),
  attempt("image", () => loads(element("img", { src: TARGET }))),
  attempt("script", () => loads(element("script", { src: TARGET }))),
  attempt("style", () => loads(element("link", { rel: "stylesheet", href: TARGET }))),
  attempt("module", async () => Object.keys(await import(TARGET)).join()),
  attempt("worker", () => new Promise((resolve) => {
    const text = `fetch(${JSON.stringify(TARGET)}, ${JSON.stringify({ method: "POST", headers: named, body })}).then(async (r) => postMessage(r.type + " " + r.status + " " + await r.text()), (e) => postMessage("refused: " + e.name))`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = () => resolve("refused: an error event");
  })),
  attempt("frame without an origin", frameless),
]);
return outcomes;
