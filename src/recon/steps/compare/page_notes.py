"""The sentences that page one of a night must carry, whatever its figures say."""

from collections import Counter

import pandas as pd

from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Sources
from recon.steps.compare.vanished_entries import vanished_told
from recon.steps.files.arrived_rows import files_told
from recon.steps.files.incomplete import NO_ORDER_FILE, missing_sources
from recon.steps.files.rejected_rows import nameless_told
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_end import STOP_NEXT
from recon.steps.ground.predecessor import SKIPPED, missing_days, named_days, previous_night
from recon.steps.ground.releases import held_nights
from recon.steps.people.sign_off import notes_on
from recon.store.money import sending_rows
from recon.store.nights import settlement_rows
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run, Stop


def skipped_nights(run: Run, *, environment: Environment) -> list[str]:
    """The business days between the night before and this one that nobody ran, in a sentence."""
    before = previous_night(run, environment=environment)
    if before is None:
        return []
    calendar = environment.settings.rules.business_calendar
    missing = missing_days(before.business_date, day=run.business_date, calendar=calendar)
    if not missing:
        return []
    why = run.predecessor.removeprefix(SKIPPED)
    reason = f" ({why})" if why != run.predecessor else ""
    days = "this day" if len(missing) == 1 else "these days"
    return [
        f"No night ran for {named_days(missing)}{reason}: what came in on {days} is judged tonight."
    ]


def _opening_told(run: Run, *, sources: Sources) -> list[str]:
    """What is older than the window, in a sentence."""
    if not sources.opening_balance:
        return []
    counts = Counter[str]()
    for balance in sources.opening_balance:
        counts[balance.what] += balance.count
    left_out = " and ".join(f"{count:,} {what}" for what, count in counts.items())
    sentence = (
        f"Opening balance, not compared: {left_out} from before the window "
        f"(`recon opening {run.run_id}` lists them)."
    )
    return [sentence]


UNREAD_TOLD_MAX = 3


def _unread_lines(run: Run, *, inputs: Inputs, environment: Environment) -> list[str]:
    """A sentence when settlement lines of this night or an earlier one could not be read."""
    with environment.store.reading() as connection:
        lines = settlement_rows.unread_lines(
            connection, run, siblings=inputs.siblings, until=inputs.last_file
        )
    if not lines:
        return []
    places = [f"line {line} of {file} ({column})" for file, line, column in lines[:UNREAD_TOLD_MAX]]
    places += ["…"] if len(lines) > UNREAD_TOLD_MAX else []
    sentence = (
        f"{len(lines):,} settlement lines could not be read ({', '.join(places)}): their batches, "
        "and the fees and reserves in the currencies that they can be of, are not verified until "
        "the file is sent again, corrected, under its name."
    )
    return [sentence]


def page_notes(
    run: Run,
    *,
    result: Reconciliation,
    inputs: Inputs,
    sources: Sources,
    vanished: pd.DataFrame,
    stop: Stop,
    environment: Environment,
) -> tuple[str, ...]:
    """All of them, those about what to do before anything else first."""
    notes = [
        *([f"{stop} {STOP_NEXT}"] if stop else []),
        *nameless_told(sources.quarantined, breaks=result.breaks),
        *inputs.moved_by_rules,
        *files_told(run, until=inputs.last_file, environment=environment),
        *_unread_lines(run, inputs=inputs, environment=environment),
    ]
    gateway = environment.settings.gateway
    if gateway.reply_signatures != "enforce":
        notes.append(
            f"Reply signatures are not enforced ({gateway.reply_signatures}): answers are not "
            "proven to be the gateway's."
        )
    notes += [f"Missing: {sentence}." for sentence in missing_sources(sources)]
    if any(sentence == NO_ORDER_FILE for sentence in missing_sources(sources)):
        notes.append(
            "Without its order files a payment looks like one that no order explains: find the "
            "files before anything below is answered."
        )
    notes += vanished_told(vanished)
    notes += _opening_told(run, sources=sources)
    notes += skipped_nights(run, environment=environment)
    if run.mode.value != "live":
        notes.append("Dry run: nothing was sent to the gateway.")
    with environment.store.reading() as connection:
        account = (run.merchant_id, run.account_id)
        unproven = held_nights(connection, account, environment=environment)
        stopped = sending_rows.stopped(connection)
        notes += notes_on(run.run_id, connection=connection)
    if stopped and not stop:
        notes.append(f"No money moves: {stopped}.")
    held = [day for day in unproven if day != run.business_date]  # this run takes its place
    if held:
        notes.append(f"Refunds are held: the night of {', '.join(map(str, held))} is NOT PROVEN.")
    return tuple(notes)
