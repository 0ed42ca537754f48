"""How a stage of a night went and how the night ended, for whoever must act.

The verdict says what the workbook is worth. Money that nobody can account for, and money that was
not sent although it should have been, needs a person sooner than any verdict: such a live night has
an end of its own, which states the amounts.

The figures of each stage are appended to `<reports>/metrics/<run id>.json` and written as one log
line. They inform and prove nothing: a failure to write them never stops a night.
"""

import json
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recon.instructions.approval import sums_text
from recon.model.errors import ReconError
from recon.model.nights import Mode, StepSummary
from recon.model.terms import End, Verdict
from recon.model.uptime import give_back
from recon.notify.night_log import note
from recon.privacy.displayed_text import for_people
from recon.privacy.own_files import advise_kernel, make_folder, replace_result
from recon.steps.runtime.environment import Environment
from recon.store.money import sending_rows
from recon.store.money.sending_rows import OpenMoney
from recon.store.nights import runs
from recon.store.nights.runs import Run, Stop

DOUBT_NEXT = (
    "Do not send them again by hand: `recon status` lists them, with what each needs. Where the "
    "gateway can be asked, the next night asks it; what that does not decide, two people do."
)
STOP_NEXT = "Find the cause, then start the same night again: nothing is sent twice."
INCOMPLETE_NEXT = "Get what is missing, then start the same night again."


@dataclass(frozen=True, slots=True)
class Undone:
    """Money of an account that a live run left for a person, in its current state."""

    doubtful: OpenMoney = field(default_factory=OpenMoney)
    """Money that may or may not have moved."""
    unsent: OpenMoney = field(default_factory=OpenMoney)
    """Approved and not sent."""
    stopped: Stop = field(default_factory=Stop)
    """Why the run stopped sending and what it did not send then."""

    @property
    def kind(self) -> End | None:
        """The end of a run because of it; None where nothing is undone."""
        if self.doubtful.count:
            return End.MONEY_IN_DOUBT
        return End.SENDING_STOPPED if self.stopped else None

    @property
    def sentence(self) -> str:
        """Counts, sums and what to do; "" for nothing."""
        sentences = []
        if self.doubtful.count:
            sentences.append(f"In doubt: {self.doubtful.as_text}. {DOUBT_NEXT}")
        if self.stopped:
            sentences.append(f"{replace(self.stopped, not_sent=self.unsent.as_text)} {STOP_NEXT}")
        return " ".join(sentences)


@dataclass(frozen=True, slots=True)
class NightEnd:
    """The outcome of a night."""

    verdict: Verdict
    undone: Undone
    missing: str
    """Which source or group of answers an INCOMPLETE night lacks."""

    @property
    def kind(self) -> End:
        """The end that is reported first."""
        return self.undone.kind or End(self.verdict.value)

    @property
    def sentence(self) -> str:
        """Why it ended so and what to do; "" where the verdict alone suffices."""
        sentences = [self.undone.sentence]
        if self.missing:
            sentences.append(f"Missing: {self.missing}. {INCOMPLETE_NEXT}")
        return " ".join(filter(None, sentences))

    @property
    def figures(self) -> dict[str, int | str]:
        """The same as fields for machines."""
        return {
            "end": self.kind.value,
            "exit_code": self.kind.exit_code,
            "why": self.sentence,
            "in_doubt": self.undone.doubtful.count,
            "in_doubt_money": sums_text(self.undone.doubtful.sums),
            "not_sent": self.undone.unsent.count,
            "not_sent_money": sums_text(self.undone.unsent.sums),
            "stopped": self.undone.stopped.why,
            "missing": self.missing,
        }


def not_verified(run: Run, *, environment: Environment) -> tuple[str, ...]:
    """Sentences on replies that could not be verified and belong to no set: each is one item."""
    with environment.store.reading() as connection:
        foreign = sending_rows.foreign_rows(connection, run)
        return (*foreign, *runs.unverified(connection, run.run_id))


def end_of(run: Run, *, environment: Environment, verdict: Verdict | None = None) -> NightEnd:
    """How a run ended, or, with the verdict it is about to get, how it will end."""
    worth = verdict or Verdict(run.verdict)
    missing = run.problem if worth is Verdict.INCOMPLETE else ""
    return NightEnd(worth, undone_by(run, environment=environment), missing)


def undone_by(run: Run, *, environment: Environment) -> Undone:
    """Money that a run left for a person; a dry run has nothing to send and leaves nothing."""
    if run.mode is not Mode.LIVE:
        return Undone()
    with environment.store.reading() as connection:
        return Undone(
            sending_rows.doubtful(connection, run),
            sending_rows.unsent(connection, run),
            runs.stop_of(connection, run.run_id),
        )


FOLDER = "metrics"
ENDED = ("end", "exit_code", "in_doubt_money", "not_sent_money", "stopped", "missing")
"""Figures of the last stage on how the night ended, in addition to its counts."""
RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024
CLEAR_REFS = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")
RESET_PEAK = "5"
"""The value by which Linux resets the peak memory reading of a process."""


def measured(
    stage: str, do: Callable[[], StepSummary], *, run_id: str, environment: Environment
) -> StepSummary:
    """Run one stage and record what it took, also when it fails.

    Raises:
        ReconError: what the stage itself raises.
    """
    started_at = environment.clock()
    began, cpu = environment.uptime().milliseconds, _cpu_seconds()
    give_back()
    # Peak memory is that of the stage; where it cannot be reset, that of the process.
    with suppress(OSError):
        advise_kernel(CLEAR_REFS, RESET_PEAK)
    summary, failed = None, ""
    try:
        summary = do()
        # The summary goes to terminals, logs and Prefect, and may quote text from outside.
        if (sentence := for_people(summary.sentence)) != summary.sentence:
            summary = replace(summary, sentence=sentence)
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        figures: dict[str, Any] = {
            "stage": stage,
            "started_at": started_at.isoformat(timespec="milliseconds"),
            "seconds": (environment.uptime().milliseconds - began) / 1000,
            "cpu_seconds": round(_cpu_seconds() - cpu, 3),
            "peak_rss_bytes": _peak_bytes(),
            "rows": {
                name: count
                for name, count in (summary.figures if summary else {}).items()
                if isinstance(count, int) and name not in ENDED
            },
        } | ({"failed": failed} if failed else {})
        figures |= {
            name: summary.figures[name] for name in ENDED if summary and name in summary.figures
        }
        summary_text = summary.sentence if summary else f"{stage} stopped with {failed}."
        with suppress(ReconError, OSError):
            _save(run_id, figures=figures, sentence=summary_text, environment=environment)
    return summary


def _save(run_id: str, *, figures: dict[str, Any], sentence: str, environment: Environment) -> None:
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    of_run = {
        "run_id": run_id,
        "merchant_id": run.merchant_id,
        "account_id": run.account_id,
        "business_date": run.business_date.isoformat(),
        "mode": run.mode.value,
    }
    note(sentence, fields={**of_run, **figures})
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    path = account.reports / FOLDER / f"{run_id}.json"
    make_folder(path.parent)
    earlier: list[Any] = []
    with suppress(OSError, ValueError, KeyError, TypeError):
        earlier = [*json.loads(path.read_text("utf-8"))["stages"]]
    document = {**of_run, "stages": [*earlier, figures]}
    replace_result(path, json.dumps(document, indent=2) + "\n")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_bytes() -> int:
    with suppress(OSError, ValueError, LookupError):
        kilobytes = {line.split()[0]: line.split()[1:] for line in STATUS.read_text().splitlines()}
        return int(kilobytes["VmHWM:"][0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT_BYTES
