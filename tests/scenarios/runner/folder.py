"""A scenario as its folder states it: steps in order, what arrives, what each night comes to."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

NOT_ARRIVING = frozenset({"expect.toml", "faults.toml", "gateway-holds.csv"})
FIRST_NIGHT = "2026-12-01"
STEP_KEYS = frozenset(
    {"night", "command", "portal", "answer", "remove", "write", "sql", "backup", "restore"}
)
NIGHT_KEYS = frozenset({"night", "at", "wire", "options", "kill_when", "timezone"})
TABLES = frozenset(
    {"breaks", "unverified", "rejected", "effects", "pending", "matched", "instructions"}
    | {"totals", "attention", "notes", "became", "journals", "held", "bank", "fees"}
)
EMPTY_UNLESS_STATED = frozenset({"breaks", "unverified", "rejected", "effects"})
"""Of these a scenario names every row: what is not written there must not have happened."""
NIGHT_WORDS = frozenset({"verdict", "ends", "prints", "failing_totals", "fails_until", *TABLES})


class ScenarioError(Exception):
    """The folder does not state what it must; the message names file and key."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under named columns, as lines such as `order | code` state them."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, text: str, *, where: str) -> Self:
        """Read lines of cells between bars; the first line names the columns."""
        lines = [line for line in text.strip().splitlines() if line.strip()]
        cells = [tuple(cell.strip() for cell in line.split("|")) for line in lines]
        for row in cells:
            if len(row) != len(cells[0]):
                text = " | ".join(row)
                raise ScenarioError(
                    f"{where}: {text!r} has not the {len(cells[0])} cells of line 1"
                )
        return cls(cells[0], tuple(cells[1:])) if cells else cls()


@dataclass(frozen=True, slots=True)
class Expected:
    """What one night must come to."""

    verdict: str
    ends: int
    prints: tuple[str, ...]
    failing_totals: tuple[str, ...]
    tables: Mapping[str, Table]
    fails_until: str = ""
    """Why this night does not come to it yet."""
    wrong_orders: Mapping[str, str] = field(default_factory=dict)
    """Order -> why its rows, and no others, are not as they must be yet."""

    @classmethod
    def of(cls, table: Mapping[str, Any], *, where: str) -> Self:
        """Read one `[[night]]`."""
        stated = {name: text for name, text in table.items() if name in TABLES or ".csv" in name}
        if wrong := sorted(table.keys() - stated.keys() - NIGHT_WORDS):
            raise ScenarioError(f"{where}: {wrong[0]!r} is none of {sorted(NIGHT_WORDS)}")
        stated = dict.fromkeys(sorted(EMPTY_UNLESS_STATED), "") | stated
        reason = table.get("fails_until", "")
        return cls(
            verdict=str(table.get("verdict", "")),
            ends=int(table.get("ends", 0)),
            prints=tuple(table.get("prints", ())),
            failing_totals=tuple(sorted(table.get("failing_totals", ()))),
            tables={
                name: Table.of(text, where=f"{where}, {name}") for name, text in stated.items()
            },
            fails_until=reason if isinstance(reason, str) else "",
            wrong_orders={} if isinstance(reason, str) else reason,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: a night, a person's command, an act in the gateway's pages."""

    kind: str
    stated: Mapping[str, Any]
    arrives: tuple[Path, ...] = ()
    """Files that came before this night."""
    expected: Expected | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One folder."""

    path: Path
    rule: str
    steps: tuple[Step, ...]
    fails_until: str = ""
    """Why the scenario as a whole is not as it must be yet."""

    @property
    def name(self) -> str:
        """Area and name, as `make scenario` takes them."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def holds(self) -> Path | None:
        """What the gateway holds."""
        path = self.path / "gateway-holds.csv"
        return path if path.exists() else None

    @property
    def plain(self) -> bool:
        """Whether only files are read, by `recon reconcile` or people's commands: no gateway."""
        files = any(self.path.glob("gateway*.csv")) or not any(step.expected for step in self.steps)
        return files and self.holds is None

    @property
    def profile(self) -> str:
        """Which gateway's profile is spoken."""
        return str(_toml(self.path / "gateway.toml").get("profile", "base"))


def scenario_of(path: Path) -> Scenario:
    """Read a folder.

    Raises:
        ScenarioError: naming file and key.
    """
    expect = _toml(path / "expect.toml")
    rule = " ".join(str(expect.get("rule", "")).split())
    if not rule.endswith("."):
        raise ScenarioError(f"{path.name}: expect.toml begins with `rule`, one sentence")
    stated = _toml(path / "faults.toml").get("step", [{"night": FIRST_NIGHT}])
    nights = expect.get("night", [])
    if len(nights) != sum("night" in step for step in stated):
        raise ScenarioError(f"{path.name}: expect.toml needs one [[night]] for each night played")
    steps: list[Step] = []
    number = 0
    for step in stated:
        kinds = STEP_KEYS & step.keys()
        if len(kinds) != 1:
            raise ScenarioError(f"{path.name}: a step is one of {sorted(STEP_KEYS)}, not {step}")
        kind = next(iter(kinds))
        if kind != "night":
            steps.append(Step(kind, step))
            continue
        number += 1
        if wrong := sorted(step.keys() - NIGHT_KEYS):
            raise ScenarioError(f"{path.name}: {wrong[0]!r} is none of {sorted(NIGHT_KEYS)}")
        expected = Expected.of(nights[number - 1], where=f"{path.name}, night {number}")
        steps.append(Step(kind, step, _arriving(path, number=number), expected))
    return Scenario(
        path=path,
        rule=rule,
        steps=tuple(steps),
        fails_until=str(expect.get("fails_until", "")),
    )


def scenarios_below(folder: Path) -> list[Scenario]:
    """Every folder with an expect.toml."""
    return [scenario_of(path.parent) for path in sorted(folder.rglob("expect.toml"))]


def _arriving(path: Path, *, number: int) -> tuple[Path, ...]:
    """Files beside expect.toml come before night 1, those of `night-2` before the second."""
    folder = path if number == 1 else path / f"night-{number}"
    files = [one for one in folder.glob("*") if one.is_file() and one.name not in NOT_ARRIVING]
    return tuple(sorted(files))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: {error}") from error
