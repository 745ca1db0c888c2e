"""`memsim serve`: each tool answers as its verb does, writes no file, and is reached over the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from memsim.cli import serve
from tests.cli.conftest import Run

NAIVE = """\
__global__ void turn(float *m) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = m[y * 32 + x];
    __syncthreads();
    m[y * 32 + x] = tile[x][y];
}
void go(float *m) { turn<<<1, dim3(32, 32)>>>(m); }
"""
OPTIONS = "--arg 'f32[1024]'"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("turn.cu").write_text(NAIVE)
    return "turn.cu"


@pytest.mark.slow
def test_a_tool_answers_as_its_verb_does(file: str, memsim: Run) -> None:
    found = serve.analyze(file, OPTIONS)
    said = memsim("analyze", file, "--arg", "f32[1024]", "--json")
    assert (found["exit_code"], found["document"]) == (0, json.loads(said.out))
    assert "32-way bank conflict" in found["document"]["verdict"]


@pytest.mark.slow
def test_variants_are_ranked_and_a_request_is_taken_apart(file: str) -> None:
    Path(file).write_text(NAIVE.replace("[32][32]", "[32][32 + PAD]"))
    swept = serve.sweep(file, f"{OPTIONS} --grid 1 --block 32,32 -D PAD=0..1")
    costs = [one["counts"]["wavefronts"] for one in swept["document"]["variants"]]
    assert costs == [1056, 64] and swept["exit_code"] == 0
    found = serve.explain(file, f"{OPTIONS} -D PAD=0")["document"]
    assert (found["ways"], len(found["lanes"]), found["counts"]["line"]) == (32, 32, 6)


@pytest.mark.slow
def test_other_texts_are_compared_and_none_is_written(file: str, tmp_path: Path) -> None:
    texts = {"padded": NAIVE.replace("[32][32]", "[32][33]"), "broken": NAIVE.replace(";", "", 1)}
    found = serve.compare_texts(file, texts, OPTIONS)
    (kernel,) = found["padded"]["document"]["kernels"]
    assert {line["change"] for line in kernel["lines"]} == {"improved", None}
    assert found["broken"]["exit_code"] == 2 and "does not compile" in found["broken"]["error"]
    assert [path.name for path in tmp_path.iterdir()] == ["turn.cu"] and Path(file).read_text() == NAIVE


@pytest.mark.slow
def test_a_changed_text_is_judged_in_one_answer(file: str, tmp_path: Path) -> None:
    found = serve.judge(file, NAIVE.replace("    __syncthreads();\n", ""), OPTIONS)
    (kernel,) = found["compare"]["document"]["kernels"]
    assert not any(line["change"] == "improved" for line in kernel["lines"])
    assert found["sanitize"]["exit_code"] == 1 and found["sanitize"]["document"]["findings"]
    assert found["suggest"]["document"]["arrays"][0]["proposals"]
    good = serve.judge(file, NAIVE.replace("[32][32]", "[32][33]"), OPTIONS)
    assert good["sanitize"]["exit_code"] == 0 and not good["sanitize"]["document"]["findings"]
    assert [path.name for path in tmp_path.iterdir()] == ["turn.cu"] and Path(file).read_text() == NAIVE


@pytest.mark.slow
def test_a_text_is_judged_as_if_it_were_saved_in_the_file(file: str, tmp_path: Path) -> None:
    """Its patch is for the file, and no name of a temporary one is in an answer."""
    found = serve.judge(f"./{file}:turn", NAIVE + "// saved nowhere\n", OPTIONS)
    assert found["compare"]["document"]["kernels"][0]["b"]["name"] == "turn.cu:turn"
    assert found["suggest"]["document"]["proof"]["diff"].startswith("--- a/turn.cu\n+++ b/turn.cu\n")
    assert "tmp" not in json.dumps(found).replace(str(tmp_path), "")


@pytest.mark.slow
def test_a_cure_is_the_first_that_suggest_has(file: str) -> None:
    """Of what `suggest` compiles, the layout that is forecast best, and no other."""
    text = NAIVE + "// cured\n"
    found = serve.judge(file, text, OPTIONS)["suggest"]["document"]
    Path(file).write_text(text)
    whole = serve.suggest(file, OPTIONS)["document"]
    assert found["proof"] == whole["proof"] and found["proof"]["counted"] == {"tile": 64}
    assert (len(found["tried"]), len(whole["tried"])) == (0, 1)
    no_conflict = serve.judge(file, text.replace("[32][32]", "[32][33]"), OPTIONS)["suggest"]["document"]
    assert no_conflict["proof"] is None and no_conflict["unproven"] == "there is nothing to prove"


@pytest.mark.slow
def test_without_cures_costs_and_errors_are_answered_alone(file: str) -> None:
    text = NAIVE.replace("    __syncthreads();\n", "")
    found = serve.judge(file, text, OPTIONS, cures=False)
    assert list(found) == ["compare", "sanitize"]
    whole = serve.judge(file, text, OPTIONS)
    assert list(whole) == ["compare", "sanitize", "suggest"]
    assert all(whole[verb] == found[verb] for verb in found)


@pytest.mark.slow
def test_a_race_is_an_answer_and_not_an_error(file: str) -> None:
    assert serve.sanitize(file, OPTIONS)["exit_code"] == 0
    Path(file).write_text(NAIVE.replace("    __syncthreads();\n", ""))
    found = serve.sanitize(file, OPTIONS)
    assert found["exit_code"] == 1
    assert {finding["array"] for finding in found["document"]["findings"]} == {"tile"}


@pytest.mark.parametrize(
    "options", ["--save-trace t.npz", "-o t.html", "--apply", "--plot t.png", "--arg 'f32"]
)
def test_options_that_write_files_are_refused(file: str, tmp_path: Path, options: str) -> None:
    found = serve.analyze(file, options)
    assert found["exit_code"] == 2 and found["error"]
    assert [path.name for path in tmp_path.iterdir()] == ["turn.cu"]


@pytest.mark.parametrize(
    ("target", "options"),
    [("turn.cu", f"{OPTIONS} --trace t.json"), ("--trace=t.json", f"turn.cu {OPTIONS}")],
)
def test_no_tool_writes_the_trace_of_an_estimate(target: str, options: str) -> None:
    found = serve.time(target, options)
    assert found["exit_code"] == 2 and "is not an option of a tool" in found["error"]


def test_an_unknown_target_says_what_there_is() -> None:
    found = serve.analyze("kernel_v44")
    assert found["exit_code"] == 2 and "kernel_v4" in found["error"]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, memsim: Run) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    done = memsim("serve")
    assert done.code == 2 and "memsim serve needs the package mcp" in done.err


@pytest.mark.slow
def test_a_client_of_the_protocol_finds_and_calls_the_tools(file: str) -> None:
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    arguments = ["-m", "memsim", "serve", "--untrusted"]
    command = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def talk() -> tuple[set[str], Any]:
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            answer = await session.call_tool("analyze", {"target": file, "options": OPTIONS})
            return {tool.name for tool in tools.tools}, answer.structured_content

    names, answer = asyncio.run(talk())
    assert names == {tool.__name__ for tool in serve.TOOLS}
    assert answer["document"] == serve.analyze(file, OPTIONS)["document"]


@pytest.mark.slow
def test_many_texts_are_shared_out(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "WORTH_PROCESSES", 2)
    monkeypatch.setattr(serve, "processors", lambda: 2)
    texts = {"padded": NAIVE.replace("[32][32]", "[32][33]"), "broken": NAIVE.replace(";", "", 1)}
    found = serve.compare_texts(file, texts, OPTIONS)
    (kernel,) = found["padded"]["document"]["kernels"]
    assert list(found) == ["padded", "broken"]
    assert {line["change"] for line in kernel["lines"]} == {"improved", None}
    assert "does not compile" in found["broken"]["error"]


@pytest.mark.slow
def test_a_text_that_does_not_compile_is_compiled_once(file: str) -> None:
    found = serve.judge(file, NAIVE.replace(";", "", 1), OPTIONS)
    assert set(found) == {"compare", "sanitize", "suggest"} and found["suggest"] is found["compare"]
    assert "does not compile" in found["compare"]["error"]
