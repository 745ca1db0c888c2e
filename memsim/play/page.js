"use strict";
// first: the fields at the start. answers: by address, of a page of the site; null if memsim's server answers.
// worker: where Python in the browser answers the rest; null if nobody does.
const { first: FIRST, gallery: GALLERY, answers: ANSWERS, worker: WORKER } = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("question");
const part = (name) => document.getElementById(name);
let asked = 0, last = null, before = null;

function state() { return Object.fromEntries(new FormData(form)); }

function show(fields) {
  for (const [name, value] of Object.entries({ ...FIRST, ...fields })) if (form.elements[name]) form.elements[name].value = value;
  ask();
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

function section(title, html) {
  const made = document.createElement("section"), heading = document.createElement("h2"), body = document.createElement("div");
  heading.textContent = title;
  body.innerHTML = html; // made by memsim's templates, which escape what the fields say
  made.append(heading, body);
  return made;
}

function name(fields) { return `tile ${fields.layout}: store [${fields.store}], load [${fields.load}], block ${fields.block}`; }

function draw() {
  const both = before ? [section(`before: ${name(before.fields)}`, before.page)] : [];
  part("answers").replaceChildren(section(before ? `after: ${name(last.fields)}` : name(last.fields), last.page), ...both);
}

function known(fields) {
  const address = String(new URLSearchParams(fields));
  return ANSWERS[address] || (WORKER ? null : { error: `This page has the answers of its examples and their cures only. memsim play '#${address}'\nopens this state, once memsim is installed on your machine.` });
}

let python = null, sent = 0;
const waits = new Map();

function started() {
  const worker = new Worker(WORKER, { type: "module" });
  part("status").textContent = "Python is being loaded: 18 MB, once …";
  worker.onmessage = ({ data: { ready, error, number, good, content } }) => {
    if (ready !== undefined) part("status").textContent = ready ? "" : `Python could not be loaded: ${error}`;
    else { waits.get(number)({ good, content }); waits.delete(number); }
  };
  worker.onerror = () => { part("status").textContent = "Python could not be loaded; this page has to come from a web server"; };
  return worker;
}

async function replied(asked, body) {
  if (!ANSWERS) {
    const reply = await fetch(asked, { method: "POST", body });
    return { good: reply.ok, content: await reply.text() };
  }
  python ??= started();
  const number = ++sent, bytes = new Uint8Array(await new Blob([body]).arrayBuffer());
  return new Promise((resolve) => { waits.set(number, resolve); python.postMessage({ number, asked, body: bytes }); });
}

async function answered(fields) {
  const reply = await replied("answer", JSON.stringify({ ...fields, vector: Number(fields.vector) }));
  return JSON.parse(reply.content);
}

async function ask() {
  const number = ++asked, fields = state();
  history.replaceState(null, "", `#${new URLSearchParams(fields)}`);
  const found = (ANSWERS && known(fields)) || await answered(fields);
  if (number !== asked) return; // a newer question is on its way
  part("error").textContent = found.error || "";
  part("cures").replaceChildren(...(found.cures || []).map((cure) =>
    button(`${cure.kind}: ${found.wavefronts.toLocaleString("en")} → ${cure.wavefronts.toLocaleString("en")} wavefronts`, () => { before = last; show({ ...state(), layout: cure.layout }); })));
  if (found.error) return;
  last = { fields, page: found.page };
  draw();
}

part("gallery").append(...Object.entries(GALLERY).map(([title, fields]) => button(title, () => { before = null; show(fields); })));
part("keep").addEventListener("click", () => { before = last; if (last) draw(); });
async function report(asked, body) {
  const { good, content } = await replied(asked, body);
  if (good) location.href = URL.createObjectURL(new Blob([content], { type: "text/html" }));
  else part("error").textContent = JSON.parse(content).error;
}

async function inBase64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

part("saved").hidden = Boolean(ANSWERS && !WORKER);
part("trace").addEventListener("change", (event) => report("trace", event.target.files[0]));
part("launch").addEventListener("change", async (event) => {
  const files = {};
  for (const file of event.target.files) files[file.webkitRelativePath.split("/").slice(1).join("/")] = await inBase64(file);
  report("launch", JSON.stringify(files));
});
let waiting = 0;
form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(ask, 150); });
form.addEventListener("submit", (event) => event.preventDefault());
show(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
