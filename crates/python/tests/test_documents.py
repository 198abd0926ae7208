"""Documents and notebooks do what they say. `CONGESTLAB_DOCUMENTS=write` writes what examples print into the page."""

import ast
import contextlib
import io
import json
import os
import re
import shutil

import pytest

from conftest import TOP

PAGE = TOP / "docs" / "python.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def test_the_page_prints_what_it_says(tmp_path, monkeypatch):
    for library in ("polars", "matplotlib", "gymnasium"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TOP / "scenarios", "scenarios")
    text, names, said = PAGE.read_text(), {"__name__": "page"}, []
    for block in BLOCK.finditer(text):
        code, expected = block.groups()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(PAGE), "exec"), names)
        said.append((expected, out.getvalue()))
    assert len(said) > 5
    if os.environ.get("CONGESTLAB_DOCUMENTS") == "write":
        prints = iter(out for _, out in said)

        def fill(block):
            out = next(prints)
            return f"```python\n{block[1]}```\n" + (f"\n```text\n{out}```\n" if out else "")

        PAGE.write_text(BLOCK.sub(fill, text))
        return
    for expected, out in said:
        assert (expected or "") == out


@pytest.mark.parametrize("notebook", sorted(path.name for path in (TOP / "crates/python/notebooks").glob("*.ipynb")))
def test_notebooks_run(notebook, tmp_path, monkeypatch):
    for library in ("polars", "matplotlib"):
        pytest.importorskip(library)
    shutil.copytree(TOP / "crates/python/notebooks", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    cells = json.loads((tmp_path / notebook).read_text())["cells"]
    names, asserted = {"__name__": "__main__"}, 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), notebook)
        asserted += sum(isinstance(node, ast.Assert) for node in ast.walk(tree))
        # The last expression of a cell is what a notebook shows.
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, notebook, "exec"), names)
        if last is not None:
            shown = eval(compile(last, notebook, "eval"), names)
            assert getattr(shown, "_repr_html_", shown.__repr__)()
    # A notebook says what must come out, and fails if it does not.
    assert asserted > 0
