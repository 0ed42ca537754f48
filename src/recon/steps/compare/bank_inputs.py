"""What a night compares of banks: their statements since the opening, and every pay-out by then."""

from recon.config.rules import Rules
from recon.matching.frames.bank_sources import BankSource, NightOfBank
from recon.steps.money.settled import settled_since
from recon.store import Connection
from recon.store.nights import bank_rows
from recon.store.nights.runs import Run


def bank_source(connection: Connection, run: Run, *, until: int, rules: Rules) -> BankSource | None:
    """The statements of the banks that the account is paid out at; None where none ever came.

    Pay-outs are those of every account that these banks serve: an entry may be of another one.
    """
    account = (run.merchant_id, run.account_id)
    banks = tuple(name for name, bank in rules.bank.items() if account in bank.served)
    if not banks:
        return None
    source = bank_rows.source_of(connection, run, banks=banks, until=until)
    if source is None:
        return None
    served = {each for name in banks for each in rules.bank[name].served}
    settled = bank_rows.settled_to(connection, accounts=served, until=until)
    known = {}
    for name in banks:
        beside = rules.bank[name].served - {account}
        others = [settled[each] for each in beside if each in settled]
        if others:
            known[name] = min(others)
    payouts = bank_rows.payouts_of(connection, accounts=served, until=until)
    since = settled_since(run, rules=rules)
    night = NightOfBank(account, banks, payouts, known, since)
    return BankSource(source.entries, source.statements, source.refused, source.notes, night)
