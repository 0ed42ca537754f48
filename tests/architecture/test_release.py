"""A release is what its commit says, byte for byte, or it is refused."""

import importlib.util
import shutil
import subprocess
import tomllib
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pytest

from recon import __version__

ROOT = Path(__file__).parents[2]
TODAY = date(2026, 12, 1)
DATED = "# Changelog\n\n## [1.2.3] - 2026-12-01\n\n- More.\n\n## [1.2.2] - 2026-11-01\n"


@pytest.fixture(scope="module")
def release():
    """`.ci/release.py`, which no package holds."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources_at(folder):
    """A copy of what is released, as another person's clone has it: other times, other modes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]:
        if (ROOT / name).is_dir():
            left = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, copy_function=shutil.copyfile, ignore=left)
        else:
            shutil.copyfile(ROOT / name, folder / name)
            (folder / name).chmod(0o600)
    (folder / ".gitignore").write_text("dist/\n")
    (folder / "left-by-a-tool").write_text("nobody's")
    return folder


def test_two_builds_and_the_sdist_give_the_same_bytes(release, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1764547200")
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    out, again = (release.build(sources_at(folder)) for folder in folders)
    assert sorted(path.name for path in out.iterdir()) == [
        f"recon-{__version__}-py3-none-any.whl",
        f"recon-{__version__}.tar.gz",
    ]
    assert release.unlike(out, again) == []
    assert release.unlike(out, release.wheel_of_sdist(out)) == []

    (out / "SHA256SUMS").write_text("".join(release.sums(out)))
    (again / "recon-0.0.whl").write_bytes(b"")
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, check=False)
    assert checked.returncode == 0
    assert release.unlike(out, again) == ["recon-0.0.whl"]


@pytest.fixture
def checkout(tmp_path):
    """A committed checkout of a version with a changelog."""

    def made(changelog, *, tag=""):
        (tmp_path / "src" / "recon").mkdir(parents=True)
        (tmp_path / "src" / "recon" / "__init__.py").write_text('__version__ = "1.2.3"\n')
        (tmp_path / "CHANGELOG.md").write_text(changelog)
        git = ["git", "-c", "user.name=N", "-c", "user.email=n@example.org"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "1"]):
            subprocess.run([*git, *words], cwd=tmp_path, check=True)
        if tag:
            subprocess.run([*git, "tag", "-a", tag, "-m", "x"], cwd=tmp_path, check=True)
            subprocess.run(
                [*git, "commit", "-q", "--allow-empty", "-m", "2"], cwd=tmp_path, check=True
            )
        return tmp_path

    return made


@pytest.mark.parametrize(
    ("changelog", "sentence"),
    [
        (DATED, ""),
        (DATED.replace("[1.2.3]", "[1.3.0]"), "begins with [1.3.0], src/recon/__init__.py says"),
        ("## [Unreleased]\n\n" + DATED, "begins with [Unreleased]"),
        ("# Changelog\n", "begins with []"),
        (DATED.replace(" - 2026-12-01", ""), "dates 1.2.3 not at all"),
        (DATED.replace("2026-12-01", "soon"), "dates 1.2.3 soon"),
        (DATED.replace("2026-12-01", "2026-12-02"), "not with a day until 2026-12-01"),
    ],
)
def test_the_changelog_names_the_version_and_its_day(release, checkout, changelog, sentence):
    faults = list(release.faults_of(checkout(changelog), version="1.2.3", today=TODAY))

    assert len(faults) == bool(sentence)
    assert sentence in "".join(faults)


def test_what_is_in_no_commit_is_not_released(release, checkout):
    root = checkout(DATED)
    (root / "CHANGELOG.md").write_text(DATED + "\n")
    (root / "new.py").touch()

    (fault,) = release.faults_of(root, version="1.2.3", today=TODAY)
    assert fault == "the checkout has what is in no commit: CHANGELOG.md, new.py"


@pytest.mark.parametrize(("tag", "count"), [("v1.2.3", 1), ("v1.2.2", 0)])
def test_a_version_is_released_once(release, checkout, tag, count):
    faults = list(release.faults_of(checkout(DATED, tag=tag), version="1.2.3", today=TODAY))

    assert len(faults) == count
    assert [fault for fault in faults if "raise the version" not in fault] == []


def test_the_version_stands_in_one_place(release):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert release.version_of(ROOT) == version("recon") == __version__
    assert project["dynamic"] == ["version"]
    assert f"v{__version__}" in release.tag_command(__version__)
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert release.tag_command("X.Y.Z") in page
