"""Breaks one line of the product at a time and asks which test notices: `python -m tests.mutants`.

The mutants stand in a TOML file for each package, drawn by chance or written down from faults of
the past: file, what stands there, what it becomes, and who notices it. A copy of the checkout is
changed, never the checkout. Who noticed before is asked first, and alone where it still does; else
all scenarios that come by the mutant's place, the quickest first, then the tests of its module.
Where they come by is found once (`--reach`, which plays all scenarios) and kept in out/.
"""

import argparse
import ast
import contextlib
import json
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
from tests.mutants.reach import Change, Reach, found, put_marks

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
KEPT = CHECKOUT / "out" / "mutants.json"
PACKAGES = (
    *("matching", "proof", "instructions", "steps", "store"),
    *("gateway_client", "archive", "files", "reports"),
)
SCENARIOS = ("tests/scenarios/test_plain_runs.py", "tests/scenarios/test_nights.py")
FOLDERS = {"reports": ("reports",)}
"""Package -> where it lies, where that is not one folder of its name."""
NOT_NOTICED = ""
DOES_NOT_START = "it does not start"
NEVER_ENDS = "it never ends"
ENDS_WITHIN = 5
"""Times as long as the same tests took unchanged, and START_SECONDS: what takes longer hangs."""
START_SECONDS = 240


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

    @property
    def change(self) -> Change:
        """What it changes."""
        return Change(self.file, self.was, self.becomes)


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
    texts = {path: path.read_text("utf-8") for path in every if "migrations" not in path.parts}
    options = [(path, list(changes_of(text))) for path, text in texts.items()]
    options = [(path, changes) for path, changes in options if changes]
    found: list[Mutant] = []
    while options and len(found) < count:
        weights = [len(changes) for _, changes in options]
        place = chance.choices(range(len(options)), weights)[0]
        path, changes = options[place]
        was, becomes = chance.choice(changes)
        with contextlib.suppress(SyntaxError):  # a parenthesis may be left over
            ast.parse(texts[path].replace(was, becomes))
            options.pop(place)
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


def judged(mutant: Mutant, *, reach: Reach | None, place: Path) -> Mutant:
    """Who notices the mutant."""
    file = place / mutant.file
    whole = file.read_text("utf-8")
    if whole.count(mutant.was) != 1:
        raise SystemExit(f"{mutant.file} has not once:\n{mutant.was}\ntake the mutant off the list")
    file.write_text(whole.replace(mutant.was, mutant.becomes), "utf-8")
    try:
        for tests in asked(mutant, reach=reach, place=place):
            if tests and (noticed := first_red(tests, reach=reach, place=place)):
                return replace(mutant, noticed_by=noticed)
    finally:
        file.write_text(whole, "utf-8")
    return replace(mutant, noticed_by=NOT_NOTICED)


def asked(mutant: Mutant, *, reach: Reach | None, place: Path) -> Iterator[Sequence[str]]:
    """What pytest plays, in turn: who noticed before, scenarios, then the tests of the module."""
    if "::" in mutant.noticed_by:
        yield [mutant.noticed_by]
    yield SCENARIOS if reach is None else reach.scenarios(mutant.change)
    module = Path(mutant.file)
    inside = Path("tests", *module.parts[1:]) if module.parts[0] == "src" else Path("tests", module)
    inside = inside if module.suffix == ".py" else inside.parent
    own = inside.with_name(f"test_{module.name}")
    yield [str(tests) for tests in (own, own.parent) if (place / tests).exists()]


def first_red(tests: Sequence[str], *, reach: Reach | None, place: Path) -> str:
    """The first test that is red, as pytest names it; "" where all are green."""
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider"]
    command += ["-o", "addopts=--import-mode=importlib -q", "--tb=no", "-rfE"]
    known = reach is not None and all(test in reach.seconds for test in tests)
    bound = ENDS_WITHIN * sum(map(reach.seconds.get, tests)) + START_SECONDS if known else None
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=place,
            env=variables(place),
            capture_output=True,
            text=True,
            check=False,
            timeout=bound,
        )
    except subprocess.TimeoutExpired:
        return NEVER_ENDS
    if done.returncode in {0, 5}:
        return NOT_NOTICED
    red = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    return red[1] if red and "::" in red[1] else DOES_NOT_START


def variables(place: Path) -> dict[str, str]:
    """The environment in which a copy is played, not the checkout."""
    own = {
        "PYTHONPATH": f"{place / 'src'}{os.pathsep}{place}",
        "PYTHONPYCACHEPREFIX": str(place / "bytecode"),
    }
    every = {**os.environ, **own}
    every.pop("PYTHONDONTWRITEBYTECODE", None)
    return every


def reached(place: Path, *, changes: Sequence[Change]) -> Reach:
    """Play all scenarios in a copy that marks who comes by."""
    marks, report = place / "marks", place / "report.xml"
    put_marks(place, marks=marks, changes=changes)
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider"]
    words = [*command, "--junitxml", str(report), *SCENARIOS]
    subprocess.run(words, cwd=place, env=variables(place), check=True)
    return found(marks, report=report)


def main() -> int:
    """Draw what is asked for, break, play, write down who noticed; 1 where somebody should have."""
    words = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    words.add_argument("packages", nargs="*", default=[*PACKAGES], help="else all")
    words.add_argument("--draw", type=int, default=0, help="draw so many more of each package")
    words.add_argument("--seed", type=int, default=7)
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--survivors", action="store_true", help="play only what nobody noticed")
    words.add_argument("--reach", action="store_true", help="find anew which scenarios come by")
    said = words.parse_args()
    lists = {}
    for package in said.packages:
        mutants = listed(package)
        known = {(one.file, one.was) for one in mutants}
        more = drawn(package, count=said.draw, seed=said.seed)
        lists[package] = mutants + [one for one in more if (one.file, one.was) not in known]
        write(package, mutants=lists[package])
    alive = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        if said.reach:
            changes = [mutant.change for mutants in lists.values() for mutant in mutants]
            reach = reached(copied(Path(folder) / "reach"), changes=changes)
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps(asdict(reach), indent=1))
        places: Queue[Path] = Queue()
        for number in range(said.workers):
            places.put(copied(Path(folder) / str(number)))
        for package, mutants in lists.items():
            alive += played(package, mutants=mutants, places=places, survivors=said.survivors)
    return min(alive, 1)


def played(
    package: str, *, mutants: Sequence[Mutant], places: "Queue[Path]", survivors: bool
) -> int:
    """Play a package's mutants and write its list; how many live that somebody should notice."""
    reach = Reach.read(KEPT)

    def one(mutant: Mutant) -> Mutant:
        if mutant.survives or (survivors and mutant.noticed_by):
            return mutant
        place = places.get()
        try:
            found = judged(mutant, reach=reach, place=place)
        finally:
            places.put(place)
        say(f"{package}: {found.file}: {found.noticed_by or 'SURVIVES'}")
        return found

    found = list(mutants)
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
