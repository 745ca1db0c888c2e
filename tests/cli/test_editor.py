"""The language server: what an editor shows of a file; its quick fix is the change that was replayed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsim.cli import editor
from tests.cli.conftest import Run
from tests.cli.test_serve import NAIVE

MAIN = "int main() { float *m; cudaMalloc(&m, 4096); turn<<<1, dim3(32, 32)>>>(m); }\n"
WHOLE = NAIVE.replace("void go(float *m) { turn<<<1, dim3(32, 32)>>>(m); }\n", MAIN)

SCRIPT = """
vim.cmd("edit turn.cu")
local id = vim.lsp.start_client({cmd = {%r, "-m", "memsim", "serve", "--lsp"}, root_dir = vim.fn.getcwd()})
vim.lsp.buf_attach_client(0, id)
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 50)
local said = {}
for _, d in ipairs(vim.diagnostic.get(0)) do table.insert(said, "warning " .. d.lnum .. " " .. d.message) end
local document = vim.lsp.util.make_text_document_params()
local lenses = vim.lsp.buf_request_sync(0, "textDocument/codeLens", {textDocument = document}, 9000)
for _, reply in pairs(lenses) do
  for _, lens in ipairs(reply.result) do
    table.insert(said, "lens " .. lens.range.start.line .. " " .. lens.command.title)
  end
end
vim.api.nvim_win_set_cursor(0, {6, 0})
local asked = vim.lsp.util.make_range_params()
asked.context = {diagnostics = {}}
for _, reply in pairs(vim.lsp.buf_request_sync(0, "textDocument/codeAction", asked, 60000)) do
  for _, action in ipairs(reply.result) do vim.lsp.util.apply_workspace_edit(action.edit, "utf-16") end
end
vim.fn.writefile(said, "said.txt")
vim.cmd("write")
vim.cmd("qall!")
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "turn.cu"
    path.write_text(WHOLE)
    return path


def test_each_wasteful_line_is_named_and_no_other(file: Path) -> None:
    (cost,) = editor.costs(file)
    assert (cost.line, cost.conflicts) == (5, True)
    assert cost.text == "turn: 32-way bank conflict, 992 of 1,024 wavefronts"
    file.write_text(WHOLE.replace("[32][32]", "[32][33]"))
    assert [*editor.costs(file)] == [] and editor.cured_text(file) is None
    file.write_text(WHOLE.replace("m[y * 32 + x] = tile[x][y]", "m[x * 32 + y] = tile[y][x]"))
    (cost,) = editor.costs(file)
    assert cost.text == "turn: 32.0 sectors per request instead of 4.0" and not cost.conflicts


@pytest.mark.slow
def test_the_cure_is_the_change_that_suggest_writes(file: Path, memsim: Run) -> None:
    cured = editor.cured_text(file)
    assert file.read_text() == WHOLE and cured != WHOLE
    assert memsim("suggest", "turn.cu", "--apply").code == 0
    assert file.read_text() == cured


def test_a_target_of_the_project_comes_before_the_source(file: Path, tmp_path: Path) -> None:
    target = (
        '[[targets]]\nname = "mine"\nfile = "turn.cu"\ngrid = 2\nblock = [32, 32]\nargs = ["f32[1024]"]\n'
    )
    (tmp_path / "memsim.toml").write_text(target)
    assert editor.questions(file) == [editor.AskedLaunch("mine")]
    (tmp_path / "memsim.toml").write_text(target.replace("turn.cu", "other.cu"))
    assert [question.target for question in editor.questions(file)] == [str(file)]


def test_a_launch_that_leaves_something_open_is_not_asked_about(file: Path) -> None:
    file.write_text(NAIVE)  # how many elements m has
    assert editor.questions(file) == []


@pytest.mark.slow
def test_neovim_shows_the_warning_and_applies_the_cure(file: Path) -> None:
    nvim = shutil.which("nvim")
    if nvim is None:
        pytest.skip("needs Neovim (Debian: apt-get install neovim)")
    Path("t.lua").write_text(SCRIPT % sys.executable)
    expected = editor.cured_text(file)
    command = [nvim, "--headless", "-u", "NONE", "-i", "NONE", "-c", "luafile t.lua"]
    subprocess.run(command, check=True, capture_output=True, timeout=200)
    said = Path("said.txt").read_text().splitlines()
    cost = "turn: 32-way bank conflict, 992 of 1,024 wavefronts"
    assert said == [f"warning 5 {cost}", f"lens 5 {cost}"]
    assert file.read_text() == expected != WHOLE
