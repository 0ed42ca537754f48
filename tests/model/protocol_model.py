"""An explicit-state model of the money protocol: every order of events, breadth first.

The world is small on purpose: a few instructions on one transaction, two or three workers that may
stop or pause anywhere, a network that delivers late or never, a query that lags. A variant switches
parts of the protocol on and off; the model says whether money can move twice, or be believed to
have moved when it did not.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

APPROVED, IN_FLIGHT, UNKNOWN, DONE, APPLIED, NOT_APPLIED, HUMAN = range(7)
IDLE, CLAIMED, CHECKED, WAITING = range(4)
ATTEMPTS_MAX = 2
EFFECTS_MAX = 2
STATES_MAX = 2_000_000
"""A model that grows beyond this is a mistake of the model."""

OPEN = frozenset({IN_FLIGHT, UNKNOWN, HUMAN})
BELIEVED = frozenset({DONE, APPLIED})


@dataclass(frozen=True, slots=True)
class Variant:
    """Which protocol is played, and how large the world is."""

    instructions: int = 1
    workers: int = 2
    retry_on_timeout: bool = False
    write_after_send: bool = False
    query_at_once: bool = False
    lease: bool = False
    """An owner that is only paused may lose its claim."""
    check_before_send: bool = False
    check_is_atomic: bool = False
    replan: bool = False
    """What was found not applied is sent again."""
    serialised: bool = True
    ledger_in_baseline: bool = True
    portal: bool = False
    inferred_to_people: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One instruction."""

    state: int = APPROVED
    attempts: int = 0
    effects: int = 0
    baseline: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """Everything there is at one moment."""

    items: tuple[Item, ...]
    workers: tuple[tuple[int, int, int], ...]
    """(what it does, instruction, attempt) of each."""
    messages: tuple[int, ...]
    """Instructions whose request is still under way, sorted."""
    visible: int = 0
    by_hand: int = 0

    @property
    def total(self) -> int:
        """Effects that truly happened."""
        return sum(item.effects for item in self.items) + self.by_hand


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the search found."""

    problem: str
    """"", "duplicate" or "false confirmation"."""
    states: int
    steps: int
    """Events until the problem."""


def explore(variant: Variant) -> Verdict:
    """Look at every reachable world, nearest first; ends at the first problem."""
    start = World(
        tuple(Item() for _ in range(variant.instructions)), ((IDLE, 0, 0),) * variant.workers, ()
    )
    seen = {start}
    queue = deque([(start, 0)])
    while queue:
        world, steps = queue.popleft()
        problem = problem_of(world)
        if problem:
            return Verdict(problem, len(seen), steps)
        for after in events(world, variant):
            if after not in seen:
                seen.add(after)
                queue.append((after, steps + 1))
        assert len(seen) <= STATES_MAX, "the model grew without bound"
    return Verdict("", len(seen), 0)


def problem_of(world: World) -> str:
    """Money moved twice, or is believed to have moved and did not."""
    for number, item in enumerate(world.items):
        if item.effects >= EFFECTS_MAX:
            return "duplicate"
        if item.state in BELIEVED and not item.effects and number not in world.messages:
            return "false confirmation"
    return ""


def events(world: World, variant: Variant) -> Iterator[World]:
    """Every world that one event leads to."""
    for number in range(len(world.workers)):
        yield from _work(world, number, variant)
    for number in sorted(set(world.messages)):
        yield from _network(world, number)
    for number, item in enumerate(world.items):
        yield from _sweep(world, number, item, variant)
        yield from _resolve(world, number, item, variant)
    if world.visible < world.total:
        yield replace(world, visible=world.total)
    if variant.portal and not world.by_hand:
        yield replace(world, by_hand=1)


def _work(world: World, number: int, variant: Variant) -> Iterator[World]:
    doing, wanted, attempt = world.workers[number]
    if doing == IDLE:
        yield from _claim(world, number, variant)
        return
    # A crash anywhere: the worker is gone, what it wrote stays.
    yield _worker(world, number, (IDLE, 0, 0))
    if doing == CLAIMED and variant.check_before_send and not variant.check_is_atomic:
        if _still_mine(world, wanted, attempt):
            yield _worker(world, number, (CHECKED, wanted, attempt))
    elif doing in {CLAIMED, CHECKED}:
        yield from _send(world, number, variant)
    elif doing == WAITING:
        yield _timed_out(world, number, variant)


def _claim(world: World, number: int, variant: Variant) -> Iterator[World]:
    for wanted, item in enumerate(world.items):
        if item.state != APPROVED or item.attempts >= ATTEMPTS_MAX:
            continue
        others = (one for place, one in enumerate(world.items) if place != wanted)
        if variant.serialised and any(one.state in OPEN for one in others):
            continue
        ledger = sum(one.state in BELIEVED for one in world.items)
        baseline = max(world.visible, ledger) if variant.ledger_in_baseline else world.visible
        claimed = replace(item, attempts=item.attempts + 1, baseline=baseline)
        if not variant.write_after_send:
            claimed = replace(claimed, state=IN_FLIGHT)
        after = _item(world, wanted, claimed)
        yield _worker(after, number, (CLAIMED, wanted, claimed.attempts))


def _send(world: World, number: int, variant: Variant) -> Iterator[World]:
    _, wanted, attempt = world.workers[number]
    if variant.check_is_atomic and not _still_mine(world, wanted, attempt):
        yield _worker(world, number, (IDLE, 0, 0))
        return
    sent = replace(world, messages=tuple(sorted((*world.messages, wanted))))
    sent = _worker(sent, number, (WAITING, wanted, attempt))
    if variant.write_after_send:
        # The crash between the send and its note: nobody knows of the request.
        yield _worker(sent, number, (IDLE, 0, 0))
        sent = _item(sent, wanted, replace(sent.items[wanted], state=IN_FLIGHT))
    yield sent


def _timed_out(world: World, number: int, variant: Variant) -> World:
    _, wanted, attempt = world.workers[number]
    after = _worker(world, number, (IDLE, 0, 0))
    if not _still_mine(world, wanted, attempt):
        return after
    state = APPROVED if variant.retry_on_timeout else UNKNOWN
    return _item(after, wanted, replace(world.items[wanted], state=state))


def _network(world: World, wanted: int) -> Iterator[World]:
    """A request is lost, or takes effect; then its answer is lost, or reaches who waits for it."""
    messages = list(world.messages)
    messages.remove(wanted)
    gone = replace(world, messages=tuple(messages))
    yield gone
    item = world.items[wanted]
    effected = _item(gone, wanted, replace(item, effects=min(item.effects + 1, EFFECTS_MAX)))
    yield effected
    for number, (doing, of, attempt) in enumerate(world.workers):
        if doing == WAITING and of == wanted and _still_mine(world, wanted, attempt):
            confirmed = _item(effected, wanted, replace(effected.items[wanted], state=DONE))
            yield _worker(confirmed, number, (IDLE, 0, 0))
            return


def _sweep(world: World, wanted: int, item: Item, variant: Variant) -> Iterator[World]:
    """What is in flight without an owner is unknown; a lease also takes it from one that sleeps."""
    if item.state != IN_FLIGHT:
        return
    owned = any(
        doing != IDLE and of == wanted and attempt == item.attempts
        for doing, of, attempt in world.workers
    )
    if not owned or variant.lease:
        yield _item(world, wanted, replace(item, state=UNKNOWN))


def _resolve(world: World, wanted: int, item: Item, variant: Variant) -> Iterator[World]:
    """The query decides: at once, or when every request is dead and every effect is shown."""
    if item.state != UNKNOWN:
        return
    ripe = wanted not in world.messages and world.visible == world.total
    if not ripe and not variant.query_at_once:
        return
    if world.visible > item.baseline:
        state = HUMAN if variant.inferred_to_people else APPLIED
    else:
        state = APPROVED if variant.replan or variant.query_at_once else NOT_APPLIED
    yield _item(world, wanted, replace(item, state=state))


def _still_mine(world: World, wanted: int, attempt: int) -> bool:
    item = world.items[wanted]
    return item.state == IN_FLIGHT and item.attempts == attempt


def _item(world: World, number: int, item: Item) -> World:
    return replace(world, items=(*world.items[:number], item, *world.items[number + 1 :]))


def _worker(world: World, number: int, worker: tuple[int, int, int]) -> World:
    # Workers have no names: the same work done by another one is the same world.
    workers = sorted((*world.workers[:number], worker, *world.workers[number + 1 :]))
    return replace(world, workers=tuple(workers))
