"""Journals for plain-text bookkeeping: beancount and hledger."""

import re
from collections.abc import Iterator, Sequence

from recon.model.errors import UsageError
from recon.model.money import format_minor_units
from recon.period.book_files.book_lines import BookCodes, BookLine, journals_of, one_line

UNMAPPED = "Equity:Unmapped"
"""Below it stand accounts of the books that have no name of beancount's."""
_BEANCOUNT_ACCOUNT = re.compile(
    r"(?:Assets|Liabilities|Equity|Income|Expenses)(?::[A-Z0-9][A-Za-z0-9-]*)+"
)
_HLEDGER_ACCOUNT = re.compile(r"\w(?:[\w.:/-]| (?=[\w.:/-]))*")


def beancount_text(lines: Sequence[BookLine], _codes: BookCodes) -> str:
    """Transactions of beancount, without `open`: the accounts are open in the books."""
    accounts = _beancount_accounts({line.account for line in lines})
    blocks = []
    for (day, name, _), own in journals_of(lines):
        blocks.append(f'{day.isoformat()} * "{_escaped(own[0].text)}"')
        blocks.append(f'  journal: "{_escaped(name)}"')
        blocks += [f"  {accounts[line.account]}  {_signed(line)}" for line in own]
        blocks.append("")
    return "\n".join(blocks)


def hledger_text(lines: Sequence[BookLine], _codes: BookCodes) -> str:
    """Transactions of hledger; the decimal mark is said, so that 1.000 is one."""
    blocks = ["decimal-mark .", ""]
    for (day, name, _), own in journals_of(lines):
        code = _plain(name).replace(")", "")
        blocks.append(f"{day.isoformat()} * ({code}) {_plain(own[0].text)}".rstrip())
        blocks += [f"    {_hledger_account(line.account)}  {_signed(line)}" for line in own]
        blocks.append("")
    return "\n".join(blocks)


def _signed(line: BookLine) -> str:
    return f"{format_minor_units(line.amount, currency=line.currency)} {line.currency}"


def _escaped(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _plain(text: str) -> str:
    """Without what begins a comment."""
    return one_line(text).replace(";", ",")


def _beancount_accounts(accounts: set[str]) -> dict[str, str]:
    """Account -> its name for beancount.

    Raises:
        UsageError: two accounts would get one name.
    """
    names = {account: _beancount_account(account) for account in sorted(accounts)}
    for name in {*names.values()}:
        own = [account for account, other in names.items() if other == name]
        if len(own) > 1:
            msg = (
                f"accounts {' and '.join(own)} would both be {name}; nothing is written: name them "
                "as beancount does under [journal.accounts], or take another format"
            )
            raise UsageError(msg)
    return names


def _beancount_account(account: str) -> str:
    if _BEANCOUNT_ACCOUNT.fullmatch(account):
        return account
    name = "".join(_parts(account)) or "-"
    return f"{UNMAPPED}:{name if name[0].isupper() or name[0].isdigit() else f'X{name}'}"


def _parts(account: str) -> Iterator[str]:
    for character in account:
        yield character if character.isascii() and character.isalnum() else "-"


def _hledger_account(account: str) -> str:
    if not _HLEDGER_ACCOUNT.fullmatch(account):
        msg = (
            f"account {one_line(account)!r} is no name of hledger's; nothing is written: name it "
            "with letters, digits and single spaces under [journal.accounts]"
        )
        raise UsageError(msg)
    return account
