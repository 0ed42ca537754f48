"""Where every program is installed, a skipped test is a failed one."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPPING_MODULE = """
import pytest
pytest.importorskip("no_such_module_anywhere")
"""
SKIPPING_TEST = """
import pytest
def test_that_skips():
    pytest.skip("no LibreOffice here")
@pytest.mark.xfail(reason="known", strict=True)
def test_known_to_fail():
    raise AssertionError
"""


def last_words(folder, *, require_all):
    """Exit code and output of pytest over both files, under our conftest."""
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"))
    (folder / "test_module.py").write_text(SKIPPING_MODULE)
    (folder / "test_one.py").write_text(SKIPPING_TEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command.append("--continue-on-collection-errors")
    variables = {**os.environ, "RECON_REQUIRE_ALL": require_all}
    ran = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout


def test_a_skip_fails_where_everything_is_required(tmp_path):
    code, said = last_words(tmp_path, require_all="1")

    assert code != 0
    assert "1 failed, 1 xfailed, 1 error" in said
    assert said.count("RECON_REQUIRE_ALL=1 and this was skipped") >= 2


def test_a_skip_stays_a_skip_elsewhere(tmp_path):
    code, said = last_words(tmp_path, require_all="0")

    assert code == 0
    assert "2 skipped, 1 xfailed" in said
