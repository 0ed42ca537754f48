"""Where every program is installed, a skipped test is a failed one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPPING = """
import pytest
pytest.importorskip("no_such_module_anywhere")
"""
SKIPPED = """
import pytest
def test_that_skips():
    pytest.skip("no LibreOffice here")
@pytest.mark.xfail(reason="known", strict=True)
def test_known_to_fail():
    raise AssertionError
"""


def outcome(folder: Path, *, require_all: str, text: str) -> tuple[int, str]:
    """Exit code and last words of pytest over one file, under our conftest."""
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"))
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    variables = {**os.environ, "RECON_REQUIRE_ALL": require_all}
    ran = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("text", [SKIPPED, SKIPPING], ids=["test", "module"])
def test_a_skip_fails_where_everything_is_required(tmp_path: Path, text: str) -> None:
    """A proof that was skipped is no proof; without the variable a skip stays a skip."""
    required, said = outcome(tmp_path, require_all="1", text=text)
    lenient, _ = outcome(tmp_path, require_all="0", text=text)

    assert required != 0
    assert "RECON_REQUIRE_ALL=1 and this was skipped" in said
    assert lenient in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    """A test that is known to fail stays what it is."""
    _, said = outcome(tmp_path, require_all="1", text=SKIPPED)

    assert "1 failed, 1 xfailed" in said
