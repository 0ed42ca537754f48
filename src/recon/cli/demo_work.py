"""What the demo does: prepare a folder date by date, and run its nights in this process."""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from recon.cli.demo_folder import (
    BANK_FORMS,
    DemoFolder,
    DemoMemory,
    approvers_toml,
    env_text,
    gateway_toml,
    merchants_toml,
    recall,
    remember,
    retention_toml,
    rules_toml,
    variables_of,
    write_whole,
)
from recon.cli.demo_gateway import demo_gateway, handed_out, move_clock
from recon.cli.night_commands import played
from recon.cli.speaking import Tell
from recon.model.business_date import BusinessCalendar
from recon.model.errors import UsageError
from recon.model.nights import Mode, NightRequest
from recon.privacy.own_files import make_folder
from recon.sandbox import DEMO_BUSINESS_DATE
from recon.sandbox.world.night import Account, add_to_ledger_table
from recon.steps.ground.environment import system_clock

ACCOUNT = Account(merchant_id="100042", account_id="100042001", other_account="100042002")
NIGHT_AFTER = timedelta(hours=2, minutes=30)
"""After its business date closed a night of the demo runs, by the demo's time."""
GATEWAY_AT = time(22, tzinfo=UTC)
"""The sandbox's time on each business date, as on the first."""
DAYS_MAX = 92
"""Of nights that follow the first one."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A prepared folder whose gateway answers."""

    port: int
    business_date: date
    variables: Mapping[str, str]


@contextmanager
def prepared(demo: DemoFolder, memory: DemoMemory, *, day: date | None = None) -> Iterator[Ready]:
    """The folder with everything a night needs, and its gateway for as long as the block runs.

    Args:
        demo: the folder.
        memory: what it remembers.
        day: a business date after the last one that was prepared; without it that one again.
    """
    from recon.store.database.migrate import upgrade

    with demo_gateway(demo, memory) as port:
        memory = replace(memory, port=port)
        if day is None:
            day = date.fromisoformat(memory.day) if memory.day else DEMO_BUSINESS_DATE
        memory = _dated(memory, day=day)
        remember(demo, memory)
        variables = variables_of(
            demo,
            account=ACCOUNT,
            base_url=f"http://127.0.0.1:{port}",
            business_date=day,
            clock_shift=memory.clock_shift,
        )
        write_whole(demo.env, env_text(variables))
        upgrade(demo.database_url)
        if not memory.prepared:
            _write_configuration(demo)
            write_files(demo, memory)
            memory = replace(memory, prepared=True)
            remember(demo, memory)
        yield Ready(port, day, variables)


def whole_night(
    demo: DemoFolder, memory: DemoMemory, *, tell: Tell, day: date | None = None
) -> Mapping[str, int | str]:
    """Prepare, then one live night, as `recon nightly` runs it; its figures."""
    with prepared(demo, memory, day=day) as ready:
        tell(f"The sandbox gateway answers at port {ready.port}, the sample night lies ready.")
        request = NightRequest(
            ACCOUNT.merchant_id, ACCOUNT.account_id, ready.business_date, Mode.LIVE
        )
        figures = played(request, variables={**_of_others(), **ready.variables}, tell=tell)
    remember(demo, replace(recall(demo) or memory, played=ready.business_date.isoformat()))
    return figures


def days_after(memory: DemoMemory, *, to: date) -> list[date]:
    """The business dates whose night did not come to its end yet, up to one.

    Raises:
        UsageError: it is not after the last one, or too far from it.
    """
    last = date.fromisoformat(memory.day) if memory.day else DEMO_BUSINESS_DATE
    span = (to - last).days
    if not 0 < span <= DAYS_MAX:
        msg = f"--to is a date after {last} and at most {DAYS_MAX} days from it"
        raise UsageError(msg)
    calendar = BusinessCalendar.of()
    every = [last + timedelta(days=number) for number in range(span + 1)]
    ended = memory.played == last.isoformat()
    return [each for each in every[ended:] if calendar.is_business_day(each)]


def _dated(memory: DemoMemory, *, day: date) -> DemoMemory:
    """The memory at a business date; its time is that of the night after it, and never goes back.

    The machine's date says nothing: the sandbox's payments have theirs.
    """
    if memory.day == day.isoformat():
        return memory
    night = BusinessCalendar.of().closes_at(day) + NIGHT_AFTER
    shift = math.ceil((night - system_clock()).total_seconds())
    if memory.day:
        shift = max(shift, memory.clock_shift)
    return replace(memory, day=day.isoformat(), clock_shift=shift, prepared=False)


def _of_others() -> dict[str, str]:
    """The shell's variables without those of another installation, a live signer among them."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RECON_")}


def _write_configuration(demo: DemoFolder) -> None:
    """Once: a person may have edited what lies there since."""
    texts = {
        "gateway": gateway_toml(),
        "retention": retention_toml(),
        "merchants": merchants_toml(demo, account=ACCOUNT),
        "rules": rules_toml(ACCOUNT),
        "approvers": approvers_toml(),
    }
    for name, text in texts.items():
        path = demo.config / f"{name}.toml"
        if not path.exists():
            write_whole(path, text)


def write_files(demo: DemoFolder, memory: DemoMemory) -> None:
    """What the merchant's systems, the gateway and the banks have of a business date."""
    day = date.fromisoformat(memory.day)
    move_clock(memory.port, to=datetime.combine(day, GATEWAY_AT))
    texts = handed_out(memory.port, account_id=ACCOUNT.account_id, day=day)
    # The sandbox's books have what was paid out before, as its settlement files and banks do.
    ledger = texts[f"ledger-{day}.csv"]
    write_whole(demo.ledger_csv, add_to_ledger_table(ledger, path=demo.ledger))
    settled = (f"settlement-before-{day}.csv", f"settlement-{day}.csv")
    banks = {f"statements-{bank}-{day}.{form}": bank for bank, form in BANK_FORMS.items()}
    folders = {
        **{name: demo.bank(bank) for name, bank in banks.items()},
        **dict.fromkeys(settled, demo.settlement),
        **{name: demo.inbox for name in texts if name.startswith("orders-")},
    }
    for name, folder in folders.items():
        make_folder(folder)
        if name in texts:  # no bank has a statement of a Saturday
            write_whole(folder / name, texts[name])
    # The sandbox's key is that of this night, with what is planted into the settlement file.
    if key := texts.get(f"answer-key-{day}.json"):
        write_whole(demo.answer_key, key)
