"""The log of nights for machines: one JSON object a line, ids, counts and our own sentences.

Nothing else gets in: only what recon's own loggers say with the fields of FIELDS. The text and the
stack of an exception stay out, because they can hold a customer's data.
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
from recon.privacy.shown_text import for_people

LINE_EVERY = timedelta(seconds=30)
"""A stage that is done within it adds no line."""


def since_start() -> timedelta:
    """A clock that nobody can set, for how long something takes; handed in by the outermost."""
    return timedelta(seconds=time.monotonic())


class PacedLines:
    """Says how far the work is, a line each LINE_EVERY of a clock that is passed in.

    The first line of a stage comes when it has worked for so long: `begin` says when it began.
    """

    def __init__(self, echo: Callable[[str], None], *, elapsed: Callable[[], timedelta]) -> None:
        self._echo = echo
        self._elapsed = elapsed
        self._stage = ""
        self._stated_at = elapsed()

    def begin(self, stage: str) -> None:
        """Another stage begins; "" where they have no names."""
        self._stage = stage
        self._stated_at = self._elapsed()

    def __call__(self, step_progress: StepProgress) -> None:
        """Hear it, and say it when it is time."""
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
"""What a line may carry beside time, level and sentence."""


def open_log(variables: Mapping[str, str]) -> None:
    """Let nights of this process write to the file that RECON_LOG_FILE names; none without it.

    Safe to repeat. A file that logrotate moved away is opened anew.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    logger = logging.getLogger(LOGGER)
    wanted = variables.get(LOG_VARIABLE, "").strip()
    for handler in tuple(logger.handlers):
        if not isinstance(handler, _Lines) or handler.baseFilename == os.path.abspath(wanted):  # noqa: PTH100 - as logging does
            continue
        logger.removeHandler(handler)
        handler.close()
    if not wanted or any(isinstance(handler, _Lines) for handler in logger.handlers):
        return
    logger.addHandler(_opened(Path(wanted)))
    logger.setLevel(logging.INFO)
    # A host program's own listeners get the sentences from the steps, not twice from here.
    logger.propagate = False


def note(sentence: str, *, fields: Mapping[str, object]) -> None:
    """One line, where a log is open."""
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
