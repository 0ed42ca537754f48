"""CPU and memory of `recon order-file check` on a statement of a bank, as camt.053, MT940 and CSV.

`make bench NAME=bank`, on a document of so many entries in one statement, each with a reference,
another side and a text as banks write them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

ENTRIES = 500_000
FIRST = date(2026, 11, 2)
DAYS = 28
KIB = 1024
IBAN = "DE89370400440532013000"


def amount_of(number: int) -> int:
    """Cents, signed: one entry in five goes out."""
    cents = number * 7_919 % 9_999_991 + 1
    return -cents if number % 5 == 0 else cents


def _plain(cents: int) -> str:
    return f"{abs(cents) // 100}.{abs(cents) % 100:02}"


def _balance(kind: str, cents: int) -> str:
    mark = "DBIT" if cents < 0 else "CRDT"
    return (
        f"<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy='EUR'>{_plain(cents)}</Amt>"
        f"<CdtDbtInd>{mark}</CdtDbtInd><Dt><Dt>{FIRST}</Dt></Dt></Bal>"
    )


def camt_parts(entries: int) -> Iterator[str]:
    """One statement of camt.053.001.08."""
    closing = sum(amount_of(number) for number in range(entries))
    last = FIRST + timedelta(DAYS - 1)
    yield (
        "<Document xmlns='urn:iso:std:iso:20022:tech:xsd:camt.053.001.08'><BkToCstmrStmt><Stmt>"
        "<Id>S1</Id><ElctrncSeqNb>1</ElctrncSeqNb><FrToDt>"
        f"<FrDtTm>{FIRST}T00:00:00</FrDtTm><ToDtTm>{last}T23:59:59</ToDtTm></FrToDt>"
        f"<Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>"
        f"{_balance('OPBD', 0)}{_balance('CLBD', closing)}"
    )
    for number in range(entries):
        cents, day = amount_of(number), FIRST + timedelta(number % DAYS)
        mark, side = ("DBIT", "Cdtr") if cents < 0 else ("CRDT", "Dbtr")
        yield (
            f"<Ntry><NtryRef>E{number:09}</NtryRef><Amt Ccy='EUR'>{_plain(cents)}</Amt>"
            f"<CdtDbtInd>{mark}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{day}</Dt></BookgDt>"
            f"<ValDt><Dt>{day}</Dt></ValDt><NtryDtls><TxDtls><Refs><EndToEndId>R{number:09}"
            f"</EndToEndId></Refs><RltdPties><{side}><Pty><Nm>Company {number % 997}</Nm></Pty>"
            f"</{side}></RltdPties><RmtInf><Ustrd>Invoice {number:09} of the month</Ustrd></RmtInf>"
            "</TxDtls></NtryDtls></Ntry>\n"
        )
    yield "</Stmt></BkToCstmrStmt></Document>"


def mt940_parts(entries: int) -> Iterator[str]:
    """One statement of SWIFT."""
    closing = sum(amount_of(number) for number in range(entries))
    last = FIRST + timedelta(DAYS - 1)
    yield f":20:STATEMENT\r\n:25:{IBAN}\r\n:28C:1/1\r\n:60F:C{FIRST:%y%m%d}EUR0,00\r\n"
    for number in range(entries):
        cents, day = amount_of(number), FIRST + timedelta(number % DAYS)
        mark, plain = "D" if cents < 0 else "C", _plain(cents).replace(".", ",")
        yield (
            f":61:{day:%y%m%d}{day:%m%d}{mark}{plain}NTRFNONREF//E{number:09}\r\n"
            f":86:166?00TRANSFER?20EREF+R{number:09}?21SVWZ+Invoice {number:09} of t?22he month"
            f"?32Company {number % 997}\r\n"
        )
    mark = "D" if closing < 0 else "C"
    yield f":62F:{mark}{last:%y%m%d}EUR{_plain(closing).replace('.', ',')}\r\n-\r\n"


def csv_chunks(entries: int) -> Iterator[str]:
    """One statement in the columns of the contract."""
    closing = sum(amount_of(number) for number in range(entries))
    last = FIRST + timedelta(DAYS - 1)
    yield (
        "iban,statement_no,from_date,to_date,opening,closing,entry_no,booked_on,value_on,currency,"
        "amount,end_to_end_id,counterparty,text\n"
    )
    for number in range(entries):
        cents, day = amount_of(number), FIRST + timedelta(number % DAYS)
        yield (
            f"{IBAN},1,{FIRST},{last},0.00,{_signed(closing)},E{number:09},{day},{day},EUR,"
            f"{_signed(cents)},R{number:09},Company {number % 997},"
            f"Invoice {number:09} of the month\n"
        )


def _signed(cents: int) -> str:
    return f"-{_plain(cents)}" if cents < 0 else _plain(cents)


FORMS = {
    "camt.053": ("b.xml", camt_parts),
    "MT940": ("b.sta", mt940_parts),
    "CSV": ("b.csv", csv_chunks),
}
RULES = f"""[bank.main]
iban = "{IBAN}"
currency = "EUR"
accounts = ["M/A"]
counterparty = ["Gateway"]
"""


def check(path: Path, *, rules: Path) -> str:
    """What the check takes of one document, with the processes that it starts."""
    recon = str(Path(sys.executable).with_name("recon"))
    command = [recon, "order-file", "check", "--kind", "bank", "--rules", str(rules), str(path)]
    started = subprocess.Popen(  # noqa: S603 - our own
        [*command, "--as-of", str(FIRST + timedelta(DAYS))], stdout=subprocess.PIPE
    )
    with started:
        words = started.stdout.read().decode() if started.stdout else ""
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode or "It counts." not in words:
        msg = f"not proven: {words}"
        raise RuntimeError(msg)
    seconds = used.ru_utime + used.ru_stime
    return f"{seconds:.1f} CPU s, {used.ru_maxrss / KIB:.0f} MiB in its largest process"


def main() -> None:
    """Each format, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.toml"
        rules.write_text(RULES, encoding="utf-8")
        for form, (name, parts) in FORMS.items():
            path = Path(folder) / name
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(parts(asked.entries))
            size = path.stat().st_size / KIB / KIB
            sys.stdout.write(f"{asked.entries} entries, {form}, {size:.0f} MiB: ")
            sys.stdout.flush()
            sys.stdout.write(f"{check(path, rules=rules)}\n")
            path.unlink()


if __name__ == "__main__":
    main()
