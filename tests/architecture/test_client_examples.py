"""The examples of docstrings give what they show; those of docs/GATEWAY.md are strictly typed."""

import doctest
import importlib
import re
import subprocess
import sys

import recon.gateway_client.interface
from tests.architecture.test_documents import ROOT
from tests.architecture.test_tidy import modules

MYPY_SECONDS_MAX = 200
EXAMPLES_MIN = 15
"""Functions with an example; fewer means that none is run any more."""


def test_every_example_of_a_docstring_gives_what_it_shows():
    found = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(verbose=False)
    ran = 0
    for path, tree in modules():
        if ">>> " not in tree.text:  # type: ignore[attr-defined]  # set by `parse`
            continue
        name = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
        for example in found.find(importlib.import_module(name.replace("/", "."))):
            ran += bool(example.examples)
            runner.run(example)

    assert runner.summarize().failed == 0
    assert ran >= EXAMPLES_MIN


def test_every_example_is_strictly_typed(tmp_path):
    page = (ROOT / "docs/GATEWAY.md").read_text(encoding="utf-8")
    texts = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    module = recon.gateway_client.interface
    tests = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    head = f"from {module.__name__} import *\n"
    texts += [head + "".join(part.source for part in test.examples) for test in tests]
    paths = [tmp_path / f"example_{number}.py" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, paths)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=MYPY_SECONDS_MAX,
        check=False,
    )

    assert len(texts) >= 2
    assert ran.returncode == 0, ran.stdout
