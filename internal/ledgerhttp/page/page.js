"use strict";

// Everything that comes from the network is put in as text, never as markup.
const $ = (id) => document.getElementById(id);

function el(tag, cls, ...children) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return e;
}

function time(text) {
  const d = new Date(text);
  if (!text || isNaN(d)) return el("time", "", "time unknown");
  const t = el("time", "", d.toLocaleTimeString());
  t.dateTime = text;
  t.title = text;
  return t;
}

function ago(text, now) {
  const s = Math.max(0, Math.round((Date.parse(now) - Date.parse(text)) / 1000));
  if (!text || isNaN(s)) return "never";
  if (s < 120) return s + " s ago";
  return s < 7200 ? Math.round(s / 60) + " min ago" : Math.round(s / 3600) + " h ago";
}

// A word with its symbol: colour is never the only sign.
const word = (cls, symbol, text) => el("span", "word " + cls, symbol + " " + text);
const many = (n, one, more) => n + " " + (n === 1 ? one : more || one + "s");
const none = (text) => el("li", "none", text);
const plain = (text) => String(text || "").replaceAll("_", " ");

const isHeard = (g, now) => g.heard && Date.parse(now) - Date.parse(g.heard) < 10000;

function counts(s, open, alarms) {
  const pair = (name, n) => el("div", "", el("dt", "", name), el("dd", "", String(n)));
  const sum = (list, field) => list.reduce((n, x) => n + x[field], 0);
  const gates = s.gates.filter((g) => g.role === "gate" && g.state === "enrolled");
  return [
    pair("Admitted", sum(s.events, "admitted")),
    pair("Gates heard", gates.filter((g) => isHeard(g, s.time)).length + " of " + gates.length),
    pair("Not yet received", sum(s.gates, "outstanding")),
    pair("Open conflicts", open), pair("Alarms", alarms),
  ];
}

function gateState(g, now) {
  if (g.state !== "enrolled") return word("bad", "✕", g.state || "not enrolled");
  if (g.role === "broker") return word("good", "✓", "broker");
  if (!g.heard) return word("mind", "?", "not heard yet");
  if (!isHeard(g, now)) return word("bad", "✕", "silent");
  return g.link === "up" ? word("good", "✓", "up") : word("mind", "!", "link " + (g.link || "unknown"));
}

function gate(g, now) {
  const state = gateState(g, now);
  const mode = g.mode && g.mode !== "normal" ? word("mind", "!", "mode " + g.mode) : null;
  const clock = g.heard && g.clock !== "trusted" ? word("mind", "!", "clock " + g.clock) : null;
  const told = g.heard ? "heard " + ago(g.heard, now) + " · mode " + g.mode + " · clock " + g.clock : "device " + g.device;
  return el("div", state.className.replace("word", "gate"),
    el("div", "head", el("span", "name", g.place || g.device), state, mode, clock),
    el("div", "soft", told),
    el("div", "soft", many(g.outstanding, "record") + " not yet received" +
      (g.lost ? " · " + g.lost + " lost" : "") + (g.set_aside ? " · " + g.set_aside + " set aside" : "")),
    g.note ? el("div", "", "! " + g.note) : null);
}

function verdict(v) {
  const words = { admit: word("good", "✓", "admit"), refuse: word("bad", "✕", "refuse"), wait: word("mind", "…", "wait") };
  const w = words[v.verdict] || word("mind", "?", plain(v.verdict));
  const first = v.first_gate ? el("div", "soft", "first at " + v.first_gate + ", ", time(v.first_seen)) : null;
  return el("li", w.className.replace("word ", ""),
    el("div", "head", w, el("span", "name", v.gate), el("span", "", v.verdict === "admit" ? "" : plain(v.reason)), time(v.time)),
    first,
    el("div", "soft", el("span", "code", v.ticket || "no ticket"),
      " · " + v.mode + (v.clock === "untrusted" ? " · clock untrusted" : "") + (v.gate_mode !== "normal" ? " · " + v.gate_mode : "")));
}

function side(c, label) {
  return el("li", "", label + c.gate + ", ", time(c.time), c.clock === "untrusted" ? " (clock untrusted)" : "");
}

function conflict(c) {
  const open = c.state === "open";
  const w = open ? word("bad", "✕", "open") : word("good", "✓", plain(c.state));
  return el("li", open ? "bad" : "good",
    el("div", "head", w, el("span", "code", c.ticket), time(c.announced)),
    el("ol", "sides", side(c.first, "first: "), ...c.others.map((o) => side(o, ""))),
    el("div", "soft", [c.certain ? "" : "perhaps not gone through", c.ordered ? "" : "order uncertain",
      c.outage ? "outage since " + new Date(c.outage).toLocaleTimeString() : "", c.note ? "note: " + c.note : ""].filter((t) => t).join(" · ")));
}

function alarm(a) {
  const w = a.over ? word("good", "✓", plain(a.kind) + ", over") : word("mind", "!", plain(a.kind));
  return el("li", a.over ? "" : "mind",
    el("div", "head", w, el("span", "name", a.gate || a.device || ""), time(a.time)),
    a.detail ? el("div", "", a.detail) : null,
    a.ticket ? el("div", "code", a.ticket) : null);
}

function fill(id, items, empty) {
  $(id).replaceChildren(...(items.length ? items : empty ? [empty] : []));
}

// A list that grows at its end is fetched from where it was left; from time to
// time it is read anew, because older entries are amended.
class Tail {
  constructor(path, field) { Object.assign(this, { path, field, items: new Map(), cursor: "", anew: 0 }); }
  async poll() {
    if (Date.now() > this.anew) Object.assign(this, { items: new Map(), cursor: "", anew: Date.now() + 20000 });
    for (let pages = 0; pages < 20; pages++) {
      const page = await get(this.path + "?limit=500&after=" + encodeURIComponent(this.cursor));
      for (const x of page[this.field]) this.items.set(x.id, x);
      if (page.next) this.cursor = page.next;
      if (page[this.field].length < 500) break;
    }
    return [...this.items.values()].reverse();
  }
}

let key = sessionStorage.getItem("key") || "";
let conflicts = new Tail("/v1/conflicts", "conflicts");
let alarms = new Tail("/v1/alarms", "alarms");
let last = null;

class Locked extends Error {}

async function get(path) {
  const r = await fetch(path, { headers: { Authorization: "Bearer " + key }, cache: "no-store", signal: AbortSignal.timeout(8000) });
  if (r.status === 401 || r.status === 403) throw new Locked((await r.json()).detail);
  if (!r.ok) throw new Error("HTTP " + r.status);
  return r.json();
}

async function poll() {
  const [s, v, c, a] = await Promise.all([get("/v1/stats"), get("/v1/verdicts"), conflicts.poll(), alarms.poll()]);
  const open = c.filter((x) => x.state === "open"), rest = c.filter((x) => x.state !== "open");
  $("events").textContent = s.events.filter((e) => !e.closed).map((e) => e.name || e.event).join(" · ") || "no event";
  fill("counts", counts(s, open.length, a.filter((x) => !x.over).length));
  fill("gates", s.gates.map((g) => gate(g, s.time)), el("p", "soft", "No gate is enrolled yet: gatectl gate add PLACE."));
  fill("verdicts", v.verdicts.slice(0, 40).map(verdict), none("No verdict yet"));
  fill("conflicts", open.concat(rest).slice(0, 50).map(conflict), none("✓ No ticket was admitted twice"));
  fill("alarms", a.slice(0, 50).map(alarm), none("✓ No alarm"));
  return s.time;
}

function show(state, text) {
  $("ask").hidden = state !== "ask";
  $("main").hidden = state === "ask";
  $("main").className = $("link").className = state === "lost" ? "lost" : "";
  $("link").textContent = text;
}

async function loop() {
  let pause = 1000;
  try {
    last = await poll();
    show("fresh", "✓ " + new Date(last).toLocaleTimeString());
  } catch (e) {
    if (e instanceof Locked) {
      if (key) $("why").textContent = e.message;
      show("ask", "");
      return;
    }
    show("lost", "✕ No answer from the ledger" + (last ? " since " + new Date(last).toLocaleTimeString() : ""));
    pause = 2000;
  }
  setTimeout(loop, pause);
}

function enter(k) {
  $("ask").hidden = true; // a second click starts no second loop
  key = k.trim();
  sessionStorage.setItem("key", key);
  conflicts = new Tail("/v1/conflicts", "conflicts");
  alarms = new Tail("/v1/alarms", "alarms");
  loop();
}

// The key may come as #key=…; it leaves the address bar at once.
const given = new URLSearchParams(location.hash.slice(1)).get("key");
if (given) history.replaceState(null, "", location.pathname);
$("enter").addEventListener("click", () => enter($("key").value));
$("key").addEventListener("keydown", (e) => { if (e.key === "Enter") enter($("key").value); });
addEventListener("hashchange", () => location.reload()); // a link with another key, opened in this tab
enter(given || key);
