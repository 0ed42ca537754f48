"""What a release is made of, in out/release: built, installed, played, built again, hashed.

Refuses a checkout that is not the release it says it is. Tags nothing: it prints the command.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path

VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
HEADING = re.compile(r"^## \[([^\]]+)\](?: - (.*))?$", re.MULTILINE)
BESIDE = ("requirements.lock", "CHANGELOG.md", "LICENSE")
"""Of the checkout, beside what is built: the constraint set, what is new, the terms."""
LISTED = ("recon.cdx.json", "licences.csv")


def main(root: Path) -> None:
    """Leaves out/release, or ends with the sentences that say why there is no release."""
    version = version_of(root)
    if faults := list(faults_of(root, version=version, today=datetime.now(UTC).date())):
        sys.exit("no release:\n" + "\n".join(f"- {fault}" for fault in faults))
    os.environ["SOURCE_DATE_EPOCH"] = _git(root, "log", "-1", "--format=%ct")
    subprocess.run([root / ".ci" / "installed"], check=True)
    installed, out = root / "out" / "installed", root / "out" / "release"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(installed / "dist", out)
    for path in (*(installed / name for name in LISTED), *(root / name for name in BESIDE)):
        shutil.copy(path, out)
    if differing := unlike(out, again_from_commit(root)):
        sys.exit(f"no release: another build of the commit differs in {', '.join(differing)}")
    if differing := unlike(out, wheel_of_sdist(out)):
        sys.exit(f"no release: the sdist builds another {', '.join(differing)}")
    (out / "SHA256SUMS").write_text("".join(sums(out)), "utf-8")
    sys.stdout.write(f"released into {out}; now: {tag_command(version)}\n")


def version_of(root: Path) -> str:
    """As src/recon says it, the one place."""
    return "".join(VERSION.findall((root / "src" / "recon" / "__init__.py").read_text("utf-8")))


def tag_command(version: str) -> str:
    """The annotated tag is the version with a v."""
    return f'git tag -a v{version} -m "recon {version}" && git push origin v{version}'


def faults_of(root: Path, *, version: str, today: date) -> Iterator[str]:
    """A sentence for each thing by which a checkout is no release."""
    if changed := _git(root, "status", "--porcelain"):
        yield f"the checkout has what is in no commit: {', '.join(changed.split()[1::2][:5])}"
    heading, said = (HEADING.findall((root / "CHANGELOG.md").read_text("utf-8")) or [("", "")])[0]
    if heading != version:
        yield f"CHANGELOG.md begins with [{heading}], src/recon/__init__.py says {version}"
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", said) or date.fromisoformat(said) > today:
        yield f"CHANGELOG.md dates {version} {said or 'not at all'}, not with a day until {today}"
    baseline = root / "src/recon/store/database/migrations/versions/0001_baseline.py"
    if baseline.exists() and "metadata.create_all" in baseline.read_text("utf-8"):
        yield "the baseline migration asks the schema for its tables: write them out in it"
    tagged = _git(root, "tag", "--list", f"v{version}", "--format=%(*objectname)%(objectname)")
    if tagged and _git(root, "rev-parse", "HEAD") not in tagged:
        yield f"v{version} is the tag of another commit: raise the version"


def again_from_commit(root: Path) -> Path:
    """A wheel and an sdist of nothing but the commit, in a folder of its own."""
    source = Path(tempfile.mkdtemp(prefix="recon-release-"))
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=root, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    return build(source)


def wheel_of_sdist(out: Path) -> Path:
    """The wheel that the sdist there builds, in a folder of its own."""
    source = Path(tempfile.mkdtemp(prefix="recon-sdist-"))
    (sdist,) = out.glob("*.tar.gz")
    # Python before 3.11.4 (Debian 12 has 3.11.2) knows no filter; the archive is our own.
    kept = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    shutil.unpack_archive(sdist, source, **kept)
    return build(next(source.iterdir()), "-t", "wheel")


def build(source: Path, *options: str) -> Path:
    """What hatchling makes of a source folder, in its dist."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(source / "dist"), *options]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    return source / "dist"


def unlike(out: Path, again: Path) -> list[str]:
    """Names of the files of another build that are not byte for byte those of this one."""
    return sorted(
        path.name
        for path in again.iterdir()
        if not (out / path.name).exists() or sum_of(path) != sum_of(out / path.name)
    )


def sum_of(path: Path) -> str:
    """Its SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums(out: Path) -> Iterable[str]:
    """Lines for `sha256sum -c`."""
    return (f"{sum_of(path)}  {path.name}\n" for path in sorted(out.iterdir()))


def _git(root: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


if __name__ == "__main__":
    main(Path(__file__).parents[1])
