"""What the demo does: prepare a folder, and run its night in this process."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from recon.cli.demo_folder import DemoFolder, DemoMemory, remember, write_whole
from recon.cli.demo_gateway import day_file, demo_gateway, effects
from recon.cli.demo_settings import (
    BANK_FORMS,
    env_text,
    gateway_toml,
    merchants_toml,
    retention_toml,
    rules_toml,
    variables_of,
)
from recon.cli.night_commands import played
from recon.cli.speaking import Tell
from recon.model.nights import Mode, NightRequest
from recon.privacy.own_files import make_folder
from recon.sandbox.sample_night import Account, sample_night
from recon.sandbox.sample_night.sample_files import (
    write_inbox,
    write_ledger_table,
)

ACCOUNT = Account(merchant_id="100042", account_id="100042001", other_account="100042002")


@dataclass(frozen=True, slots=True)
class Ready:
    """A prepared folder whose gateway answers."""

    port: int
    business_date: str
    variables: Mapping[str, str]


@contextmanager
def prepared(demo: DemoFolder, memory: DemoMemory) -> Iterator[Ready]:
    """The folder with everything a night needs, and its gateway for as long as the block runs."""
    from recon.sandbox import DEMO_BUSINESS_DATE
    from recon.store.database.migrate import upgrade

    business_date = DEMO_BUSINESS_DATE.isoformat()
    with demo_gateway(demo, memory) as port:
        memory = replace(memory, port=port)
        remember(demo, memory)
        variables = variables_of(
            demo,
            account=ACCOUNT,
            base_url=f"http://127.0.0.1:{port}",
            business_date=business_date,
        )
        write_whole(demo.env, env_text(variables))
        upgrade(demo.database_url)
        if not memory.prepared:
            _write_sample(demo, memory)
            remember(demo, replace(memory, prepared=True))
        yield Ready(port, business_date, variables)


def whole_night(demo: DemoFolder, memory: DemoMemory, *, tell: Tell) -> Mapping[str, int | str]:
    """Prepare, then one live night, as `recon nightly` runs it; its figures."""
    with prepared(demo, memory) as ready:
        tell(f"The sandbox gateway answers at port {ready.port}, the sample night lies ready.")
        request = NightRequest(
            ACCOUNT.merchant_id, ACCOUNT.account_id, ready.business_date, Mode.LIVE
        )
        return played(request, variables={**_of_others(), **ready.variables}, tell=tell)


def _of_others() -> dict[str, str]:
    """The shell's variables without those of another installation, a live signer among them."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RECON_")}


def _write_sample(demo: DemoFolder, memory: DemoMemory) -> None:
    """Configuration, order files, ledger and answer key; writing them again changes no byte."""
    from recon.sandbox import DEMO_BUSINESS_DATE

    write_whole(demo.config / "gateway.toml", gateway_toml())
    write_whole(demo.config / "retention.toml", retention_toml())
    write_whole(demo.config / "merchants.toml", merchants_toml(demo, account=ACCOUNT))
    write_whole(demo.config / "rules.toml", rules_toml(ACCOUNT))
    night = sample_night(
        effects(memory.port), account=ACCOUNT, business_date=DEMO_BUSINESS_DATE, seed=memory.seed
    )
    write_day = partial(
        day_file, memory.port, account_id=ACCOUNT.account_id, day=DEMO_BUSINESS_DATE
    )
    # The sandbox's books have what was paid out before, as its settlement files and banks do.
    ledger = write_day(f"ledger-{DEMO_BUSINESS_DATE}.csv")
    write_ledger_table(ledger, path=demo.ledger)
    write_whole(demo.ledger_csv, ledger)
    for kind in ("settlement-before", "settlement"):
        name = f"{kind}-{DEMO_BUSINESS_DATE}.csv"
        write_whole(demo.settlement / name, write_day(name))
    for bank, form in BANK_FORMS.items():
        name = f"statements-{bank}-{DEMO_BUSINESS_DATE}.{form}"
        make_folder(demo.bank(bank))
        write_whole(demo.bank(bank) / name, write_day(name))
    # The sandbox's key is that of this night, with what is planted into the settlement file.
    write_whole(demo.answer_key, write_day(f"answer-key-{DEMO_BUSINESS_DATE}.json"))
    write_inbox(night, inbox=demo.inbox)
