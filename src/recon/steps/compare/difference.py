"""What changed between two nights, and why: read from their stored results alone."""

from dataclasses import dataclass

from recon.model.errors import InputsGoneError, UsageError
from recon.proof.engine import reconcile as compare
from recon.steps.compare.rebuild import rebuilt, run_named
from recon.steps.compare.rules_change import Change, ChangedRule, changed_rules, compared, told_of
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.store.nights import runs


@dataclass(frozen=True, slots=True)
class Difference:
    """Two nights beside each other."""

    first: str
    second: str
    """Run, business date and verdict, in words."""
    same_rules: bool
    unchanged: int
    rules: tuple[ChangedRule, ...]
    """Empty when they are the same."""
    moved_by_rules: str
    """What of the second night the change of the rules alone moved; "" when nothing changed."""
    changes: tuple[Change, ...]


def difference(first: str, second: str, *, environment: Environment) -> Difference:
    """What the second night says otherwise than the first.

    Raises:
        UsageError: one of the nights cannot be found or has no result, or they are of two accounts.
    """
    with environment.store.reading() as connection:
        earlier, other = (run_named(connection, name) for name in (first, second))
        before, after = (
            kept_results.load(connection, run.run_id, environment=environment)
            for run in (earlier, other)
        )
    if (earlier.merchant_id, earlier.account_id) != (other.merchant_id, other.account_id):
        msg = f"{first} and {second} are nights of two accounts"
        raise UsageError(msg)
    if before is None or after is None:
        msg = f"run {earlier.run_id if before is None else other.run_id} has no result"
        raise UsageError(msg)
    same_rules = before.rules_digest == after.rules_digest
    changes, unchanged = compared(before, after)
    rules, moved = ((), "") if same_rules else _by_rules(earlier, other, environment=environment)
    return Difference(
        f"{earlier.business_date} ({earlier.run_id}): {before.verdict}",
        f"{other.business_date} ({other.run_id}): {after.verdict}",
        same_rules,
        unchanged,
        rules,
        moved,
        changes,
    )


def _by_rules(
    first: runs.Run, second: runs.Run, *, environment: Environment
) -> tuple[tuple[ChangedRule, ...], str]:
    """Which rules changed, and what the second night would be under those of the first."""
    try:
        then = rebuilt(first, environment=environment).rules
        now = rebuilt(second, environment=environment)
    except InputsGoneError as error:
        return (), f"What the change of the rules moved is not known: {error}."
    as_before = compare(now.sources, rules=then, as_of=second.as_of, previous=now.previous)
    moved, _ = compared(as_before, now.result)
    return changed_rules(then, now.rules), told_of(moved)
