"""Breaks one line of the product at a time and asks which test notices: `python -m tests.mutants`.

The mutants stand in a TOML file for each package, drawn by chance or written down from faults of
the past: file, what stands there, what it becomes, and who notices it. A copy of the checkout is
changed, never the checkout. A mutant that nobody noticed yet is played against the scenarios that
show its package, then against the tests of its module; what is red is written down, and from then
on that alone is played. No time decides: a run ends when its tests end.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import Queue

import tomli_w

from tests.mutants.drawing import changes_of

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
PLAIN = "tests/scenarios/test_plain_runs.py"
NIGHTS = "tests/scenarios/test_nights.py"
SCENARIOS: dict[str, tuple[str, ...]] = {
    "matching": (PLAIN, "settlement/", "continuity/", "doubt/lost-reply", "money/refunds"),
    "proof": (PLAIN, "continuity/", "settlement/", "month/"),
    "files": (PLAIN, "ingest/", "corrections/"),
    "reports": (PLAIN, "people/", "money/", "month/"),
    "archive": ("corrections/", "month/", "continuity/", "people/answers"),
    "store": ("corrections/", "money/", "doubt/", "people/", "month/", "crash/"),
    "settlement": ("money/", "doubt/", "people/"),
    "gateway": ("query/", "money/", "doubt/"),
    "period": ("month/",),
    "steps": ("money/", "doubt/", "people/", "query/", "corrections/", "continuity/", "month/"),
}
"""Package -> where a change of it shows: plain runs first, then areas of nights."""
FOLDERS = {
    "reports": ("reports",),
    "gateway": ("src/recon/gateway", "src/recon/gateway_client"),
}
"""Package -> where it lies, where that is not one folder of its name."""
NOT_NOTICED = ""
DOES_NOT_START = "it does not start"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    file: str
    was: str
    """Whole lines, which the file has once."""
    becomes: str
    noticed_by: str = NOT_NOTICED
    """A test, as pytest names it."""
    survives: str = ""
    """Why nobody needs to notice it."""


def listed(package: str) -> list[Mutant]:
    """The mutants of a package."""
    path = HERE / f"{package}.toml"
    tables = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    return [Mutant(**table) for table in tables.get("mutant", [])]


def write(package: str, *, mutants: Sequence[Mutant]) -> None:
    """Put the list back, in the order of files."""
    ordered = sorted(mutants, key=lambda one: (one.file, one.was, one.becomes))
    tables = [{name: text for name, text in asdict(one).items() if text} for one in ordered]
    (HERE / f"{package}.toml").write_text(tomli_w.dumps({"mutant": tables}, multiline_strings=True))


def drawn(package: str, *, count: int, seed: int) -> list[Mutant]:
    """So many changes of lines inside functions, one a file, by chance."""
    chance = random.Random(seed)
    folders = [CHECKOUT / name for name in FOLDERS.get(package, (f"src/recon/{package}",))]
    every = sorted(path for folder in folders for path in folder.rglob("*.py"))
    files = [path for path in every if "migrations" not in path.parts]
    options = [(path, list(changes_of(path.read_text("utf-8")))) for path in files]
    options = [(path, changes) for path, changes in options if changes]
    found: list[Mutant] = []
    while options and len(found) < count:
        weights = [len(changes) for _, changes in options]
        place = chance.choices(range(len(options)), weights)[0]
        path, changes = options.pop(place)
        was, becomes = chance.choice(changes)
        found.append(Mutant(str(path.relative_to(CHECKOUT)), was, becomes))
    return found


def copied(folder: Path) -> Path:
    """A copy of what the checkout has under version control, as it stands now."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, names):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, target)
    return folder


def judged(mutant: Mutant, *, package: str, place: Path) -> Mutant:
    """Who notices the mutant; the test that did is asked first, and alone where it still does."""
    file = place / mutant.file
    whole = file.read_text("utf-8")
    if whole.count(mutant.was) != 1:
        raise SystemExit(f"{mutant.file} has not once:\n{mutant.was}\ntake the mutant off the list")
    file.write_text(whole.replace(mutant.was, mutant.becomes), "utf-8")
    try:
        for words in asked(mutant, package=package, place=place):
            if noticed := first_red(words, place=place):
                return replace(mutant, noticed_by=noticed)
    finally:
        file.write_text(whole, "utf-8")
    return replace(mutant, noticed_by=NOT_NOTICED)


def asked(mutant: Mutant, *, package: str, place: Path) -> Iterator[list[str]]:
    """What pytest plays, in turn: who noticed before, scenarios, then the tests of the module."""
    if mutant.noticed_by and mutant.noticed_by != DOES_NOT_START:
        yield [mutant.noticed_by]
    areas = [area for area in SCENARIOS[package] if area != PLAIN]
    if PLAIN in SCENARIOS[package]:
        yield [PLAIN]
    yield [NIGHTS, "-k", " or ".join(areas)]
    module = Path(mutant.file)
    inside = Path("tests", *module.parts[1:]) if module.parts[0] == "src" else Path("tests", module)
    own = inside.with_name(f"test_{module.name}")
    for tests in (own, own.parent):
        if (place / tests).exists():
            yield [str(tests)]


def first_red(words: Sequence[str], *, place: Path) -> str:
    """The first test that is red, as pytest names it; "" where all are green."""
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider"]
    variables = {**os.environ, "PYTHONPATH": f"{place / 'src'}{os.pathsep}{place}"}
    variables |= {"PYTHONPYCACHEPREFIX": str(place / "bytecode")}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [*command, "--tb=no", "-rfE", *words],
        cwd=place,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode in {0, 5}:
        return NOT_NOTICED
    red = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    return red[1] if red and "::" in red[1] else DOES_NOT_START


def main() -> int:
    """Draw what is asked for, break, play, write down who noticed; 1 where somebody should have."""
    words = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    words.add_argument("packages", nargs="*", default=[*SCENARIOS], help="else all")
    words.add_argument("--draw", type=int, default=0, help="draw so many more of each package")
    words.add_argument("--seed", type=int, default=7)
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--survivors", action="store_true", help="play only what nobody noticed")
    said = words.parse_args()
    alive = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        places: Queue[Path] = Queue()
        for number in range(said.workers):
            places.put(copied(Path(folder) / str(number)))
        for package in said.packages:
            mutants = listed(package)
            known = {one.file for one in mutants}
            more = drawn(package, count=said.draw, seed=said.seed)
            mutants += [one for one in more if one.file not in known]
            alive += played(package, mutants=mutants, places=places, survivors=said.survivors)
    return min(alive, 1)


def played(
    package: str, *, mutants: Sequence[Mutant], places: "Queue[Path]", survivors: bool
) -> int:
    """Play a package's mutants and write its list; how many live that somebody should notice."""

    def one(mutant: Mutant) -> Mutant:
        if mutant.survives or (survivors and mutant.noticed_by):
            return mutant
        place = places.get()
        try:
            found = judged(mutant, package=package, place=place)
        finally:
            places.put(place)
        say(f"{package}: {found.file}: {found.noticed_by or 'SURVIVES'}")
        return found

    found = list(mutants)
    write(package, mutants=found)
    with ThreadPoolExecutor(places.qsize()) as pool:
        for number, each in enumerate(pool.map(one, mutants)):
            found[number] = each
            write(package, mutants=found)  # a run that is ended keeps what it learnt
    by = [each.noticed_by for each in found if not each.survives]
    scenarios = sum("tests/scenarios/" in each for each in by)
    say(
        f"{package}: {sum(map(bool, by))} of {len(by)} noticed, {scenarios} by scenarios; "
        f"{len(found) - len(by)} need not be"
    )
    return sum(not each for each in by)


def say(line: str) -> None:
    """One line, at once: the whole takes long."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
