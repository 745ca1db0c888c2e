"use strict";
const GALLERY = {
  "transpose": { layout: "(32,32):(32,1)", store: "y, x", load: "x, y" },
  "padded": { layout: "(32,32):(33,1)", store: "y, x", load: "x, y" },
  "XOR": { layout: "Sw<5,0,5> o (32,32):(32,1)", store: "y, x", load: "x, y" },
  "every second word": { layout: "(2048):(1)", block: "32x32", store: "", load: "rank * 2" },
  "broadcast": { store: "", load: "y, 7" },
  "a row of float4": { layout: "(64,128):(128,1)", block: "32x8", store: "", load: "y, x * 4", vector: "4" },
  "float4, two rows of lanes": { layout: "(16,64):(64,1)", block: "256", store: "", load: "rank / 16, rank % 16 * 4", vector: "4" },
  "a column of halves": { layout: "(64,64):(64,1)", element: "f16", block: "64x8", store: "", load: "x, y * 8", vector: "8" },
  "reduction, stride 2": { layout: "(1024):(1)", block: "256", store: "", load: "rank * 2 % 512" },
  "columns of a matrix": { memory: "global", layout: "(1024,1024):(1024,1)", store: "", load: "x, y" },
};
const FIRST = { layout: "(32,32):(32,1)", element: "f32", memory: "shared", block: "32x32", store: "y, x", load: "x, y", vector: "1" };
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

async function ask() {
  const number = ++asked, fields = state();
  history.replaceState(null, "", `#${new URLSearchParams(fields)}`);
  const reply = await fetch("answer", { method: "POST", body: JSON.stringify({ ...fields, vector: Number(fields.vector) }) });
  const found = await reply.json();
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
part("trace").addEventListener("change", async (event) => {
  const reply = await fetch("trace", { method: "POST", body: event.target.files[0] });
  if (reply.ok) location.href = URL.createObjectURL(new Blob([await reply.text()], { type: "text/html" }));
  else part("error").textContent = (await reply.json()).error;
});
let waiting = 0;
form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(ask, 150); });
form.addEventListener("submit", (event) => event.preventDefault());
show(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
