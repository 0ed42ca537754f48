"""The process that parses foreign bytes holds no key: not in its memory, its request, anywhere."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import IO, Any

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.reader import files
from recon.files.reader.door import FileReader
from recon.files.reader.files import InstructionFacts, instructions
from recon.instructions.sealing import Seal

IBAN = "DE89370400440532013000"
PAGE_BYTES = 1024 * 1024
HALF_BYTES = 8
HALVES = "halves.json"
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw", re.MULTILINE)


def halved(secret: bytes) -> list[str]:
    """A secret in two parts: whoever looks for it does not hold it whole."""
    return [secret[:HALF_BYTES].hex(), secret[HALF_BYTES:].hex()]


def instructions_and_what_is_held(rows: IO[bytes], *, path: Path, **how: Any) -> InstructionFacts:
    """The reader's task, then the names of the secrets that this process has in its memory."""
    facts = instructions(rows, path=path, **how)
    halves = json.loads((path.parent / HALVES).read_text())
    looked_for = {name: [bytes.fromhex(half) for half in pair] for name, pair in halves.items()}
    held = {name for name, pair in looked_for.items() if _is_in_memory(*pair)}
    return facts._replace(private=",".join(sorted(held)))


def _is_in_memory(first: bytes, second: bytes) -> bool:
    """Whether the two stand side by side in memory; environment and arguments lie there too."""
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for region in _REGION.finditer(Path("/proc/self/maps").read_text()):
            at, end = (int(edge, 16) for edge in region.groups())
            while at < end:
                memory.seek(at)
                page = memory.read(min(PAGE_BYTES, end - at) + len(first) - 1)
                found = page.find(first)
                while found >= 0:
                    memory.seek(at + found + len(first))
                    if memory.read(len(second)) == second:
                        return True
                    found = page.find(first, found + 1)
                at += PAGE_BYTES
    return False


def test_the_process_that_reads_instructions_holds_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the payee, which is in the file: the key that seals it is neither sent nor inherited."""
    key, sign_key = Fernet.generate_key(), Fernet.generate_key()
    raw = base64.urlsafe_b64decode(key)
    secrets = {
        "seal key": key,
        "seal key, half that signs": raw[:16],
        "seal key, half that encrypts": raw[16:],
        "seal key of digests": hashlib.sha256(b"recon payee\x1f" + key).digest(),
        "sign key": sign_key,
    }
    monkeypatch.setenv("RECON_SEAL_KEY", key.decode())
    monkeypatch.setenv("RECON_SIGN_KEY", sign_key.decode())
    looked_for = {name: halved(secret) for name, secret in secrets.items()}
    (tmp_path / HALVES).write_text(json.dumps(looked_for | {"payee": halved(IBAN.encode())}))
    path = tmp_path / "instructions-1.csv"
    path.write_text(
        "merchant_id,account_id,kind,request_id,currency,amount,beneficiary.bank_details.iban\n"
        f"100042,100042001,payout,P-1,EUR,10.00,{IBAN}\n"
    )
    requests: list[bytes] = []

    class Overheard(FileReader):
        """It keeps what it asks of the other process."""

        def _ask(self, request: bytes, **files: Any) -> Any:
            requests.append(request)
            return super()._ask(request, **files)

    reader = Overheard()
    monkeypatch.setattr(files, "file_reader", lambda: reader)
    monkeypatch.setattr(files, "instructions", instructions_and_what_is_held)
    seal = Seal(SecretStr(key.decode()))
    how: Any = {"rules": Rules(), "review_flags": frozenset({"1"}), "layout": STANDARD}
    read, held = files.instruction_file(path, **how, seal=seal)
    reader.close()

    assert held == "payee"
    assert [name for name, secret in secrets.items() if secret in requests[0]] == []
    assert IBAN in seal.open(read.actions[0]["sealed"])
