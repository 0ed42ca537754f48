"""What is shipped: the wheel, the lock and the pins that were measured."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"recon", "flows", "tasks", "reports"}
PINS = {
    "prefect": ((3, 8), (3, 9)),
    "fastapi": ((0, 139), (0, 151)),
    "sqlalchemy": ((2, 0, 45), (2, 1)),
    "httpx": ((0, 28), (0, 29)),
    "openpyxl": ((3, 1, 5), (3, 2)),
    "pandas": ((3, 0), (4,)),
    "pydantic": ((2, 11), (3,)),
}
"""Package: from (included), to (excluded). Why: CONTRIBUTING.md, "Dependencies"."""


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory):
    """Names of all files in the wheel, built as a release builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stderr

    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


LOCKS = ("requirements.lock", "requirements-dev.lock")


def locked_texts(lock):
    """Version of each package of a lock, as it is written."""
    text = (ROOT / lock).read_text("utf-8")
    return dict(
        re.findall(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^\]]*\])?==([0-9][^\s;]*)", text, re.MULTILINE)
    )


def locked_versions():
    """Version of each package that runs as numbers (letters of pre-releases dropped)."""
    return {
        name: tuple(int(part) for part in re.findall(r"\d+", version))
        for name, version in locked_texts("requirements.lock").items()
    }


def unhashed_entries(text):
    """Requirements of a lock that are not pinned or carry no hash."""
    joined = re.sub(r"\\\n\s*", " ", text)
    entries = [line for line in joined.splitlines() if line and not line.lstrip().startswith("#")]
    return [line for line in entries if "==" not in line or "--hash=sha256:" not in line]


def test_the_wheel_holds_exactly_our_packages(wheel_names):
    top = {name.split("/")[0] for name in wheel_names if ".dist-info" not in name.split("/")[0]}

    assert top == PACKAGES


def test_the_wheel_holds_every_configuration_file(wheel_names):
    bundled = {name for name in wheel_names if name.startswith("recon/_config/")}

    config = ROOT / "config"
    assert bundled == {
        f"recon/_config/{path.relative_to(config)}"
        for path in (*config.glob("*.toml"), *(config / "examples").rglob("*.*"))
    }


def test_the_wheel_holds_every_module_and_its_files(wheel_names):
    sources = [(ROOT / "src", path) for path in (ROOT / "src").rglob("*")]
    sources += [(ROOT, path) for name in PACKAGES for path in (ROOT / name).rglob("*")]
    wanted = {
        str(path.relative_to(base))
        for base, path in sources
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted |= {f"{name}/py.typed" for name in PACKAGES}

    assert wanted <= set(wheel_names)


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_pins_and_hashes_every_line(lock):
    assert unhashed_entries((ROOT / lock).read_text("utf-8")) == []


def test_what_is_tested_is_what_runs():
    runs, tested = locked_texts("requirements.lock"), locked_texts("requirements-dev.lock")

    assert len(runs) > 100
    assert {name: tested.get(name) for name in runs} == runs


def test_no_tool_of_development_is_installed_to_run():
    (group,) = re.findall(
        r"^dev = \[\n(.*?)^\]",
        (ROOT / "pyproject.toml").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    tools = set(re.findall(r'^    "([a-z0-9-]+)', group, re.MULTILINE))

    assert {"pytest", "moto", "playwright"} <= tools
    assert tools & set(locked_texts("requirements.lock")) == set()


def test_the_documented_installation_is_the_one_that_is_played():
    page = (ROOT / "docs" / "OPERATIONS.md").read_text("utf-8")
    played = (ROOT / ".ci" / "installed").read_text("utf-8")
    quiet = "--quiet --disable-pip-version-check "
    typed = re.findall(r"^/opt/recon/bin/pip install (.*) \S+$", page, re.MULTILINE)
    done = re.findall(rf'^"\$VENV/bin/pip" install {quiet}(.*) \S+$', played, re.MULTILINE)

    assert len(typed) == 2
    assert typed == done


def test_an_unhashed_line_is_found():
    assert unhashed_entries("a==1 \\\n    --hash=sha256:00\nb==2\n# c\nd>=1\n") == ["b==2", "d>=1"]


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_names_no_index_host(lock):
    text = (ROOT / lock).read_text("utf-8")

    assert re.findall(r"https?://|--(?:extra-)?index-url|--find-links|--trusted-host", text) == []


@pytest.mark.parametrize(("package", "bounds"), PINS.items())
def test_the_lock_keeps_the_pin(package, bounds):
    lowest, first_refused = bounds

    assert lowest <= locked_versions()[package] < first_refused


@pytest.mark.parametrize("package", PINS)
def test_the_project_file_keeps_the_pin(package):
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (declared,) = re.findall(rf'^    "{package}(?:\[[^\]]*\])?([<>=][^"]*)"', text, re.MULTILINE)
    first_refused = ".".join(str(part) for part in PINS[package][1])

    assert f"<{first_refused}" in declared.split(",")
