"""The process that has DuckDB, killed for real while it is asked a statement."""

import os
import signal
from collections.abc import Callable, Mapping
from threading import Timer
from typing import Any

import pytest

from recon.proof import sql_session

ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"
AT_WORK_SECONDS = 0.05
"""From when a statement was sent to the kill; it would run for years."""


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[int]]:
    """Arrange that who is asked a statement with this text in it is killed over it.

    What comes back lists the processes that were killed.
    """

    def arrange(text: str) -> list[int]:
        ask, killed = sql_session._Process.ask, list[int]()

        def asked(
            one: sql_session._Process, request: Mapping[str, object], *, wait_seconds: float
        ) -> dict[str, Any] | None:
            if text in str(request.get("statement")) and not killed:
                killed.append(one.process.pid)
                Timer(AT_WORK_SECONDS, os.kill, (one.process.pid, signal.SIGKILL)).start()
                request = {**request, "do": "run", "statement": ENDLESS, "given": None}
                request.pop("into", None)
            return ask(one, request, wait_seconds=wait_seconds)

        monkeypatch.setattr(sql_session._Process, "ask", asked)
        return killed

    return arrange
