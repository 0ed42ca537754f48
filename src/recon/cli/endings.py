"""How a command ends that could not do its work: one sentence and an exit code."""

import os
import tempfile
import traceback
from dataclasses import dataclass

from recon.model.errors import ReconError
from recon.privacy.shown_text import for_people

UNEXPECTED_EXIT_CODE = 1


@dataclass(frozen=True, slots=True)
class CommandEnding:
    """What is said on stderr, and what the shell gets."""

    sentence: str
    exit_code: int


INTERRUPTED = CommandEnding(
    "Interrupted. Everything committed so far is kept, and a batch that was under way counts as in "
    "doubt until the gateway is asked: start the same command again and it goes on; nothing is "
    "sent twice.",
    130,  # what a shell gives for SIGINT
)


def ending_of(error: BaseException, *, debug: bool) -> CommandEnding:
    """The ending that fits an exception."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, ReconError):
        sentence = str(error) or (type(error).__doc__ or "").strip()
        return CommandEnding(
            f"{sentence}\n{_full_text(error)}" if debug else sentence, error.exit_code
        )
    where = _full_text(error) if debug else _kept(error)
    return CommandEnding(
        f"Stopped by an unexpected {type(error).__name__}. Everything committed so far is kept: "
        f"start the same command again, and report this if it stops again. {where}",
        UNEXPECTED_EXIT_CODE,
    )


def _kept(error: BaseException) -> str:
    """Write the full text to a file that only this user can read; says where it is."""
    try:
        handle, path = tempfile.mkstemp(prefix="recon-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_full_text(error))
    except OSError:
        return "The full text could not be written; --debug shows it."
    return f"The full text is in {path}."


def _full_text(error: BaseException) -> str:
    return for_people("".join(traceback.format_exception(error)).rstrip())
