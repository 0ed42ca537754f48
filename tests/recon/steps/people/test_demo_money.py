"""Two people move the demo's money by commands: a list by their phones, then a doubt by a message.

Campaign `prefect-forms` plays the same by Prefect's pages.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from recon import cli
from recon.cli.demo_folder import DemoMemory, folder_at
from recon.cli.demo_work import Ready, prepared
from tests.recon.steps.demo_people import (
    CODE_LIVES,
    PEOPLE,
    declare_people,
    message_beside,
    phone_of,
    refund_told,
)

ORDERS = 60


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ready]:
    """A demo whose gateway answers, as a shell has it that took its env."""
    place = folder_at(tmp_path / "demo")
    with prepared(place, DemoMemory(orders=ORDERS, seed=42)) as found:
        declare_people(place.root)
        for name, value in found.variables.items():
            monkeypatch.setenv(name, value)
        yield found


def typed(capsys: Any, *words: str) -> tuple[int, str]:
    """A command's exit code and what it answered."""
    code = cli.main(list(words))
    return code, capsys.readouterr().out


def by_both(capsys: Any, demo: Path, *words: str, ahead: timedelta = timedelta()) -> list[str]:
    """What a command answered each of both people; `ahead`, by the code that comes next."""
    codes = ((name, phone_of(demo, name, ahead=ahead)) for name in PEOPLE)
    return [typed(capsys, *words, "--as", name, "--code", code)[1] for name, code in codes]


def refunds(ready: Ready) -> int:
    """How many refunds the gateway did for us."""
    lines = httpx.get(f"http://127.0.0.1:{ready.port}/_sandbox/effects").text.splitlines()
    return sum('"refund"' in line and '"api"' in line for line in lines)


def test_refunds_wait_for_two_phones_and_a_doubt_is_decided_by_a_message(
    ready: Ready, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The codes are those of now, though the demo's nights have a date of their own."""
    demo = tmp_path / "demo"
    first, _ = typed(capsys, "nightly")
    _, waits = typed(capsys, "approve")
    digest = re.search(r"list ([0-9a-f]{16})", waits)
    assert digest is not None, waits
    before = refunds(ready)
    approved = by_both(capsys, demo, "approve", "--list", digest[1])
    lost = {"operation": "refund", "kind": "fin", "when": "after", "nth": 1}
    address = f"http://127.0.0.1:{ready.port}/_sandbox/faults"
    httpx.post(address, json={"rules": [lost]}).raise_for_status()
    second, _ = typed(capsys, "nightly")
    doubt = refund_told(ready.variables)
    message = message_beside(doubt, shown=typed(capsys, "status")[1])
    seen = ["--verdict", "applied", "--evidence", "the portal shows it", "--message", message]
    # A code counts once, and less than half a minute may have gone by.
    decided = by_both(capsys, demo, "resolve", doubt.instruction_id, *seen, ahead=CODE_LIVES)

    assert (first, second) == (3, 5)
    assert [words.partition(":")[0] for words in approved] == ["Noted", "Approved"]
    assert before == 0
    assert refunds(ready) > 0
    assert [words.partition(":")[0] for words in decided] == ["Noted", "Decided"]
    assert decided[1].endswith(", applied.\n")
    assert doubt.instruction_id not in typed(capsys, "status")[1]
