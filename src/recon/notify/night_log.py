"""The log of runs for machines: one JSON object per line with ids, counts and our own messages.

Only messages of recon's own loggers and the fields of FIELDS are written. Text and stack trace of
exceptions are left out, because they may contain a customer's data.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from logging.handlers import WatchedFileHandler
from pathlib import Path

from pythonjsonlogger.json import JsonFormatter

from recon.model.errors import ConfigurationError
from recon.model.step_progress import StepProgress
from recon.privacy.displayed_text import for_people

LINE_EVERY = timedelta(seconds=30)
"""A stage that ends within this time logs no progress line."""


def since_start() -> timedelta:
    """Return the monotonic time, a clock to be passed in by the outermost caller."""
    return timedelta(seconds=time.monotonic())


class PacedLines:
    """Reports progress at most once per LINE_EVERY of the clock that is passed in.

    The first line of a stage comes that long after its start, which `begin` records.
    """

    def __init__(self, echo: Callable[[str], None], *, elapsed: Callable[[], timedelta]) -> None:
        self._echo = echo
        self._elapsed = elapsed
        self._stage = ""
        self._stated_at = elapsed()

    def begin(self, stage: str) -> None:
        """Start another stage; "" if stages have no names."""
        self._stage = stage
        self._stated_at = self._elapsed()

    def __call__(self, step_progress: StepProgress) -> None:
        """Receive progress, and report it if it is time."""
        now = self._elapsed()
        if now - self._stated_at < LINE_EVERY:
            return
        self._stated_at = now
        self._echo(f"{self._stage}: {step_progress}." if self._stage else f"{step_progress}.")


LOG_VARIABLE = "RECON_LOG_FILE"
LOGGER = "recon.night"
LOG_MODE = 0o600
SENTENCE_CHARACTERS_MAX = 1_000

FIELDS = (
    *("run_id", "merchant_id", "account_id", "business_date", "mode"),
    *("stage", "seconds", "cpu_seconds", "peak_rss_bytes", "rows", "failed"),
    *("end", "exit_code", "in_doubt_money", "not_sent_money", "stopped", "missing"),
)
"""Fields of a line besides time, level and message."""


def open_log(variables: Mapping[str, str]) -> None:
    """Log the runs of this process to the file named by RECON_LOG_FILE, if it is set.

    May be called repeatedly. A file moved away by logrotate is reopened.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    logger = logging.getLogger(LOGGER)
    value = variables.get(LOG_VARIABLE, "").strip()
    for handler in tuple(logger.handlers):
        if not isinstance(handler, _Lines) or handler.baseFilename == os.path.abspath(value):  # noqa: PTH100 - as logging does
            continue
        logger.removeHandler(handler)
        handler.close()
    if not value or any(isinstance(handler, _Lines) for handler in logger.handlers):
        return
    logger.addHandler(_opened(Path(value)))
    logger.setLevel(logging.INFO)
    # A host program's own handlers get the messages from the steps, and not again from here.
    logger.propagate = False


def note(sentence: str, *, fields: Mapping[str, object]) -> None:
    """Write one line, if a log is open."""
    known = {name: fields[name] for name in FIELDS if name in fields}
    logging.getLogger(LOGGER).info(
        "%s", for_people(sentence)[:SENTENCE_CHARACTERS_MAX], extra=known
    )


class _Lines(WatchedFileHandler):
    """Appends lines to a file that only its owner can read."""

    def _open(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the type is logging's own
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, LOG_MODE)
        return os.fdopen(descriptor, "a", encoding="utf-8")


def _opened(path: Path) -> _Lines:
    try:
        handler = _Lines(path)
    except OSError as error:
        msg = f"{LOG_VARIABLE} names {path}, which cannot be written ({error.strerror})"
        raise ConfigurationError(msg) from error
    handler.setFormatter(
        JsonFormatter(
            ["asctime", "levelname", "message", *FIELDS],
            rename_fields={"asctime": "at", "levelname": "level", "message": "said"},
            json_ensure_ascii=False,
        )
    )
    handler.addFilter(_without_stack)
    return handler


def _without_stack(record: logging.LogRecord) -> bool:
    record.exc_info = record.exc_text = record.stack_info = None
    return True
