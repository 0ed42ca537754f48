"""The merchant's side: configuration, inbox, books, the command line, and what time it is there."""

import contextlib
import io
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import tomli_w
from openpyxl import load_workbook

from recon.cli import main
from tests.scenarios.runner.folder import FIRST_NIGHT, Scenario, ScenarioError, Step
from tests.scenarios.runner.gateway import ACCOUNT, MERCHANT, PROGRAM, PlayedGateway
from tests.scenarios.runner.sheets import read

CONFIG_FILES = frozenset(
    {"rules.toml", "limits.toml", "approvers.toml", "merchants.toml", "gateway.toml", "fees.toml"}
)
PLAIN_SOURCES = frozenset(
    {"orders", "gateway", "ledger", "instructions", "settlement", "bank", "layout"}
)
NO_ENTRIES = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"
KILLED_WITHIN_SECONDS = 200
ASKED_AGAIN_AFTER_SECONDS = 0.02
REPORTED_BEFORE_SECONDS = 1
"""Between SIGTERM and SIGKILL; a machine that goes down waits longer, but the request as long."""
NIGHT_BEGINS = timedelta(days=1, hours=2)
"""At two in the morning after its business date."""
PEOPLE_COME = timedelta(hours=1)
ANSWERS_SHEET, ANSWERS_HEADER = "Breaks", "Key"
BASE = Path(__file__).parent / "base"
"""A merchant as small as can be; a scenario's own files are laid over it key by key."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What a command came to."""

    words: str
    exit_code: int
    text: str
    """What it printed, on both streams."""


@dataclass
class PlayedMerchant:
    """One merchant's folder and database, at a time of its own."""

    folder: Path
    scenario: Scenario
    gateway: PlayedGateway
    now: datetime
    log: list[Stated] = field(default_factory=list)
    workbook: Path | None = None
    """The newest one."""
    written: Path | None = None
    """That of the newest night, if it wrote one."""
    timezone: str = "UTC"
    """Of the machine, while it plays its newest night."""
    _results: list[Path] = field(default_factory=list)

    @classmethod
    def opened(
        cls, folder: Path, *, scenario: Scenario, gateway: PlayedGateway, empty: Path
    ) -> Self:
        """A merchant before its first night; `empty` is a database with all tables and no row."""
        for name in ("config", "inbox", "reports", "settlement", "bank"):
            (folder / name).mkdir(parents=True)
        shutil.copy(empty, folder / "recon.sqlite")
        (folder / "ledger.csv").write_text(NO_ENTRIES)
        if not scenario.plain:
            gateway.begin(scenario.holds)
        nights = (step.stated["night"] for step in scenario.steps if step.expected)
        first = next(nights, FIRST_NIGHT)
        opened = cls(folder, scenario, gateway, datetime.fromisoformat(f"{first}T12:00:00+00:00"))
        opened._write_config()
        return opened

    @property
    def answers(self) -> Path:
        """A copy beside the reports: the workbook itself stays as it was written."""
        assert self.workbook is not None
        return self.folder / f"answers-{self.workbook.name}"

    def night(self, step: Step) -> Stated:
        """A night, or a comparison of plain files, or a night that is killed on its way."""
        day = str(step.stated["night"])
        begins = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC) + NIGHT_BEGINS
        self._let_pass(step, otherwise=max(begins, self.now + PEOPLE_COME))
        for file in step.arrives:
            self._arrive(file)
        self._write_config(*(file.parent for file in step.arrives))
        self.timezone = step.stated.get("timezone", "UTC")
        options = [self.filled(word) for word in step.stated.get("options", ())]
        if self.scenario.plain:
            return self._compare(step, day=day, options=options)
        wire = [dict(rule) for rule in step.stated.get("wire", ())]
        words = ["nightly", "--business-date", day, *options]
        if where := step.stated.get("kill_when"):
            return self._killed(words, wire=wire, where=where)
        self.gateway.plan(wire)
        said = self.run(words)
        self.gateway.plan([])
        return self._with_workbook(said)

    def act(self, step: Step) -> Stated | None:
        """What a person does between two nights."""
        self._let_pass(step, otherwise=self.now + PEOPLE_COME)
        stated = step.stated[step.kind]
        if step.kind == "command":
            return self.run(_words(self.filled(stated)))
        if step.kind == "portal":
            self.gateway.by_hand(self.filled(stated))
        elif step.kind == "remove":
            (self.folder / stated).unlink()
        elif step.kind in {"backup", "restore"}:  # of a database and its archive together
            whole, aside = self.folder, self.folder / "backups" / stated
            here, there = (whole, aside) if step.kind == "backup" else (aside, whole)
            shutil.rmtree(there / "archive", ignore_errors=True)
            shutil.copytree(here / "archive", there / "archive")
            shutil.copy(here / "recon.sqlite", there)
        elif step.kind == "write":
            for name, text in stated.items():
                (self.folder / name).write_text(self.filled(text))
        elif step.kind == "sql":
            with contextlib.closing(sqlite3.connect(self.folder / "recon.sqlite")) as database:
                database.execute(self.filled(stated))
                database.commit()
        else:
            self._answer(stated)
        return None

    def run(self, words: list[str]) -> Stated:
        """One command in this process, as the shell would start it."""
        out = io.StringIO()
        with self._variables(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = main(words)
        self.log.append(Stated("recon " + " ".join(words), code, out.getvalue()))
        return self.log[-1]

    def filled(self, text: str) -> str:
        """Put in what only this play knows: `<payment of A-1>`, `<refund of A-1>`, `<list>`."""
        return re.sub(r"<([a-z]+)(?: of ([^<>]+))?>", self._known, text)

    def _known(self, found: re.Match[str]) -> str:
        word, order = found[1], found[2] or ""
        paths = {"folder": self.folder, "workbook": self.workbook, "here": self.scenario.path}
        if word in paths:
            return str(paths[word])
        if word == "answers":
            return str(self.answers)
        if word == "payment":
            return self.gateway.payments[order][-1]
        if word == "list":
            return self._list()
        if word == "run":
            return self._run()
        rows = read(self.workbook).rows("instructions")
        ids = [row["instruction"] for row in rows if (row["kind"], row["order"]) == (word, order)]
        if not ids:
            raise ScenarioError(f"the newest workbook has no instruction for {found[0]}")
        return ids[-1]

    def _list(self) -> str:
        """The digest of what waits, as `recon approve` shows it."""
        shown = self.run(["approve"]).text
        if not (digest := re.search(r"\b[0-9a-f]{12,64}\b", shown.rpartition("ist")[2])):
            raise ScenarioError(f"`recon approve` names no list: {shown}")
        return digest[0]

    def _run(self) -> str:
        """The run that began last."""
        newest = "SELECT run_id FROM run ORDER BY started_at DESC LIMIT 1"
        with contextlib.closing(sqlite3.connect(self.folder / "recon.sqlite")) as database:
            return str(database.execute(newest).fetchone()[0])

    def _with_workbook(self, said: Stated) -> Stated:
        """What a night says last is where its workbook is; one that was refused wrote none."""
        found = re.search(r"^Workbook: (.+\.xlsx)$", said.text, re.MULTILINE)
        self.written = Path(found[1]) if found else None
        self.workbook = self.written or self.workbook
        return said

    def _compare(self, step: Step, *, day: str, options: list[str]) -> Stated:
        words = ["reconcile", "--as-of", day, "--rules", str(self.folder / "config" / "rules.toml")]
        for file in step.arrives:
            kind = _source(file)
            if kind in PLAIN_SOURCES and file.name not in CONFIG_FILES:
                words += [f"--{kind}", str(self.folder / "inbox" / file.name)]
        if (fees := self.folder / "config" / "fees.toml").exists():
            words += ["--fees", str(fees)]
        if self._results:
            words += ["--previous", str(self._results[-1])]
        out = self.folder / "reports" / f"result-{len(self._results) + 1}"
        said = self._with_workbook(self.run([*words, "--out", str(out), *options]))
        if self.written:
            self._results.append(out)
        return said

    def _killed(
        self, words: list[str], *, wire: list[dict[str, Any]], where: Mapping[str, Any]
    ) -> Stated:
        """Kill the night while it waits for the answer to one request, at once or after a word."""
        of = {name: value for name, value in where.items() if name != "told_before"}
        silence = {"kind": "silence", "seconds": 2 * KILLED_WITHIN_SECONDS, "nth": 1, **of}
        self.gateway.plan([*wire, silence])
        with self._variables():
            process = subprocess.Popen(
                [*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        ends = time.monotonic() + KILLED_WITHIN_SECONDS
        while self.gateway.played() == 0 and process.poll() is None and time.monotonic() < ends:
            time.sleep(ASKED_AGAIN_AFTER_SECONDS)
        killed = self.gateway.played() > 0
        if where.get("told_before"):
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(REPORTED_BEFORE_SECONDS)
        process.send_signal(signal.SIGKILL)
        text = process.communicate()[0]
        if not killed:
            raise ScenarioError(f"the night never asked for what kills it, {where}: {text}")
        self.gateway.plan([])
        self.log.append(Stated(f"recon {' '.join(words)}   (killed)", process.returncode, text))
        return self._with_workbook(self.log[-1])

    def _let_pass(self, step: Step, *, otherwise: datetime) -> None:
        at = step.stated.get("at")
        self.now = datetime.fromisoformat(str(at)).astimezone(UTC) if at else otherwise
        if not self.scenario.plain:
            self.gateway.advance(self.now)

    def _arrive(self, file: Path) -> None:
        """A file comes under its own name: into the inbox that such files have."""
        if file.name in CONFIG_FILES:
            return
        target = self.folder / "inbox"
        if not self.scenario.plain:
            kind = _source(file)
            target = {
                "ledger": self.folder,
                "settlement": self.folder / "settlement",
                "bank": self.folder / "bank",
            }.get(kind, target)
        (target / file.name).write_bytes(_filled_bytes(file.read_bytes(), fill=self.filled))

    def _write_config(self, *folders: Path) -> None:
        """The scenario's own files laid over a merchant's, and those of a night over both."""
        config = {file.name: tomllib.loads(file.read_text("utf-8")) for file in BASE.glob("*.toml")}
        of_nights = config.pop("nights.toml")
        if not self.scenario.plain:
            config["rules.toml"] = _laid_over(config["rules.toml"], of_nights)
        inboxes: dict[str, Any] = {}
        if any((self.folder / "settlement").iterdir()):
            inbox = {"settlement": {"inbox": "<folder>/settlement"}}
            inboxes["accounts"] = {f"{MERCHANT}/{ACCOUNT}": inbox}
        if any((self.folder / "bank").iterdir()):
            inboxes["bank"] = {"main": {"inbox": "<folder>/bank"}}
        config["merchants.toml"] = _laid_over(config["merchants.toml"], inboxes)
        for folder in dict.fromkeys([self.scenario.path, *folders]):
            for name in CONFIG_FILES:
                if (file := folder / name).exists():
                    own = tomllib.loads(file.read_text("utf-8"))
                    config[name] = _laid_over(config.get(name, {}), own)
        for name, table in config.items():
            text = tomli_w.dumps(table).replace("<folder>", str(self.folder))
            (self.folder / "config" / name).write_text(text)

    def _answer(self, stated: Mapping[str, str]) -> None:
        """Fill cream cells of the newest workbook, as somebody does in a spreadsheet."""
        assert self.workbook is not None
        book = load_workbook(self.answers if self.answers.exists() else self.workbook)
        sheet = book[ANSWERS_SHEET]
        header = next(
            row for row in sheet.iter_rows() if ANSWERS_HEADER in {cell.value for cell in row}
        )
        columns = {str(cell.value): cell.column or 0 for cell in header}
        for row in range((header[0].row or 0) + 1, sheet.max_row + 1):
            if stated["order"] in {sheet.cell(row, columns["Order or batch"]).value, "every"}:
                for title, value in stated.items():
                    if title != "order":
                        sheet.cell(row, columns[title]).value = value
        book.save(self.answers)

    @contextlib.contextmanager
    def _variables(self) -> Iterator[None]:
        before = dict(os.environ)
        shift = int((self.now - datetime.now(tz=UTC)).total_seconds())
        os.environ.update(
            {
                "RECON_DATABASE_URL": f"sqlite:///{self.folder / 'recon.sqlite'}",
                "RECON_CONFIG_DIR": str(self.folder / "config"),
                "RECON_GATEWAY_BASE_URL": self.gateway.base_url,
                "RECON_SIGN_KEY": "sandbox",
                "RECON_MERCHANT": MERCHANT,
                "RECON_ACCOUNT": ACCOUNT,
                "RECON_CLOCK_SHIFT": str(shift),
                "COLUMNS": "200",
                "TZ": self.timezone,
            }
        )
        time.tzset()
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
            time.tzset()


def _source(file: Path) -> str:
    """`orders` of `orders-web.csv` and `orders.csv`."""
    return re.split(r"[-.0-9]", file.name)[0]


def _words(line: str) -> list[str]:
    """A command line's words; quotes hold words together."""
    return [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', line)]


def _filled_bytes(content: bytes, *, fill: Callable[[str], str]) -> bytes:
    try:
        return fill(content.decode()).encode()
    except UnicodeDecodeError:
        return content


def _laid_over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in own.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _laid_over(merged[key], value) if both else value
    return merged
