"""How a night ended, for whoever must act: exit code, state, notice and the last sentence.

The verdict says what the workbook is worth. Money that nobody can account for, and money that was
not sent although it was to be, needs a person sooner than any verdict: such a live night has an end
of its own, which says how much it is.
"""

from dataclasses import dataclass, field, replace

from recon.instructions.approval import sums_text
from recon.model.nights import Mode
from recon.model.terms import End, Verdict
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
    """Money of an account that a live run left for a person, as it stands now."""

    doubtful: OpenMoney = field(default_factory=OpenMoney)
    """What may have moved and nobody can say."""
    unsent: OpenMoney = field(default_factory=OpenMoney)
    """Approved and not sent."""
    stopped: Stop = field(default_factory=Stop)
    """Why the run stopped sending and what it did not send then."""

    @property
    def kind(self) -> End | None:
        """The end that it makes of a run; None where nothing is undone."""
        if self.doubtful.count:
            return End.MONEY_IN_DOUBT
        return End.SENDING_STOPPED if self.stopped else None

    @property
    def sentence(self) -> str:
        """What it is, in counts and sums, and what to do; "" for nothing."""
        terms = []
        if self.doubtful.count:
            terms.append(f"In doubt: {self.doubtful.as_text}. {DOUBT_NEXT}")
        if self.stopped:
            terms.append(f"{replace(self.stopped, not_sent=self.unsent.as_text)} {STOP_NEXT}")
        return " ".join(terms)


@dataclass(frozen=True, slots=True)
class NightEnd:
    """What a night came to."""

    verdict: Verdict
    undone: Undone
    missing: str
    """Which source or group of answers an INCOMPLETE night lacks."""

    @property
    def kind(self) -> End:
        """The end that is told first."""
        return self.undone.kind or End(self.verdict.value)

    @property
    def sentence(self) -> str:
        """Why it ended so and what to do; "" where the verdict says it all."""
        terms = [self.undone.sentence]
        if self.missing:
            terms.append(f"Missing: {self.missing}. {INCOMPLETE_NEXT}")
        return " ".join(filter(None, terms))

    @property
    def figures(self) -> dict[str, int | str]:
        """The same for machines."""
        return {
            "end": self.kind.value,
            "exit_code": self.kind.exit_code,
            "told": self.sentence,
            "in_doubt": self.undone.doubtful.count,
            "in_doubt_money": sums_text(self.undone.doubtful.sums),
            "not_sent": self.undone.unsent.count,
            "not_sent_money": sums_text(self.undone.unsent.sums),
            "stopped": self.undone.stopped.why,
            "missing": self.missing,
        }


def not_verified(run: Run, *, environment: Environment) -> tuple[str, ...]:
    """What a night could not believe and that is of no set, each in words: one item of it each."""
    with environment.store.reading() as connection:
        foreign = sending_rows.foreign_rows(connection, run)
        return (*foreign, *runs.unverified(connection, run.run_id))


def end_of(run: Run, *, environment: Environment, verdict: Verdict | None = None) -> NightEnd:
    """How a run ended, or, with the verdict it is about to get, how it is to end."""
    worth = verdict or Verdict(run.verdict)
    missing = run.problem if worth is Verdict.INCOMPLETE else ""
    return NightEnd(worth, undone_by(run, environment=environment), missing)


def undone_by(run: Run, *, environment: Environment) -> Undone:
    """What a run left for a person; a dry run has nothing to send and leaves nothing."""
    if run.mode is not Mode.LIVE:
        return Undone()
    with environment.store.reading() as connection:
        return Undone(
            sending_rows.doubtful(connection, run),
            sending_rows.unsent(connection, run),
            runs.stop_of(connection, run.run_id),
        )
