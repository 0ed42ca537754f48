"""CPU and memory of reading and proving a bank's statement, as camt.053 and as MT940.

Run by `make bench-bank`. Each reading is a fresh process, on a document of so many entries in one
statement, each with a reference, another side and a text as banks write them.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from recon.config.rules import Rules
from recon.files.formats.named_bytes import open_pieces
from recon.files.kinds.bank_batches import ENTRY_SCHEMA
from recon.files.kinds.bank_file import bank_file_of
from recon.files.reader import parcel

SECONDS_MAX = 1_800
ENTRIES = 1_000_000
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


FORMS = {"camt.053": ("b.xml", camt_parts), "MT940": ("b.sta", mt940_parts)}


def read_one(path: Path) -> None:
    """Read and prove one document; CPU seconds and MiB beyond what was loaded, in one line."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.process_time()
    read = bank_file_of(open_pieces(path), rules=Rules())
    with tempfile.TemporaryFile() as rows:
        parcel.write_batches(read.batches(), schema=ENTRY_SCHEMA, into=rows)
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    grown = (after.ru_maxrss - before.ru_maxrss) / KIB
    sys.stdout.write(
        f"{read.source_file.rows_read} entries: {seconds:.1f} CPU s"
        f", {after.ru_maxrss / KIB:.0f} MiB"
        f", {grown:.0f} of it for the reading\n"
    )


def main() -> None:
    """Both formats, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--read", type=Path)
    asked = parser.parse_args()
    if asked.read:
        read_one(asked.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        for form, (name, parts) in FORMS.items():
            path = Path(folder) / name
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(parts(asked.entries))
            size = path.stat().st_size / KIB / KIB
            sys.stdout.write(f"{form}, {size:.0f} MiB: ")
            sys.stdout.flush()
            command = [sys.executable, __file__, "--read", str(path)]
            subprocess.run(command, check=True, timeout=SECONDS_MAX)  # noqa: S603 - our own


if __name__ == "__main__":
    main()
