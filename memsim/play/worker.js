// Python in the browser, by Pyodide: answers what the page asks as memsim's server does. Each message is
// { number, asked, body }, its reply { number, good, content }; { ready } comes first.
import { loadPyodide } from "./pyodide.mjs";

const here = new URL(".", self.location).href;

async function load(name) {
  const found = await fetch(here + name);
  if (!found.ok) throw new Error(`${name}: ${found.status} ${found.statusText}`);
  return found.arrayBuffer();
}

async function start() {
  const [python, packages] = await Promise.all([loadPyodide({ indexURL: here }), load("packages.zip")]);
  python.unpackArchive(packages, "zip");
  return python.runPython("from memsim.play.in_browser import reply_to_page; reply_to_page");
}

const replying = start();
replying.then(() => postMessage({ ready: true }), (error) => postMessage({ ready: false, error: String(error) }));
onmessage = async ({ data: { number, asked, body } }) => {
  const found = (await replying)(asked, body);
  const [good, content] = found.toJs();
  found.destroy();
  postMessage({ number, good, content });
};
