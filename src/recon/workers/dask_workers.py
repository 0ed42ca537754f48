"""Execute the parts of a run in other processes of this machine, or on a Dask cluster.

Dask is imported only when the first part is submitted. A process or worker receives a function of
ours and plain values: no key, password or database address. The part of a dead worker is done again
by another. The connection to a scheduler is TLS with certificates on both sides, since whoever may
submit a part to a worker may do anything that the worker may.
"""

import logging
import os
import pickle
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from recon import __version__
from recon.config.cluster import ClusterSettings, Done, InProcess, Item, Workers
from recon.config.keys import key_of_file
from recon.model.errors import ClusterError, ConfigurationError, ReconError
from recon.model.uptime import collect_seldom, give_back, pool_of, reuse_freed_memory
from recon.privacy.own_processes import OwnProcess

ATTEMPTS = 3
"""How often a part is started if its process is killed from outside."""
WAITING_MAX = 1
"""Parts submitted beyond those in progress, so that a free process has the next one at once."""
START = (
    "from recon.model.uptime import collect_seldom; collect_seldom(); "
    f"import sys; from {__name__} import answer; answer(int(sys.argv[1]))"
)
START_AGAIN = (
    "what was done before is kept: start the night again, with `compared_at_once = 1` in "
    "cluster.toml where this comes again"
)

Answer = tuple[Any, ReconError | None]
"""The result of a part, or the error in its place."""


@contextmanager
def workers_of(cluster: ClusterSettings, *, variables: Mapping[str, str]) -> Iterator[Workers]:
    """Yield the executor for the parts of a run; it is released at the end of the block.

    Args:
        cluster: Its configuration.
        variables: Environment of the run, for processes started here.
    """
    if cluster.address:
        with DaskWorkers(cluster) as workers:
            yield workers
    elif cluster.compared_at_once == 1:
        yield InProcess()
    else:
        yield ProcessPool(
            at_once=cluster.compared_at_once,
            variables=variables,
            seconds_max=cluster.result_seconds,
        )


def _in_order(
    items: Iterable[Item],
    in_hand: deque[Any],
    *,
    many: int,
    hand_out: Callable[[Item], Any],
    result: Callable[[Any], Done],
) -> Iterator[Done]:
    """Yield results in order, with up to `many` in progress; unawaited ones stay in `in_hand`."""
    for item in items:
        if len(in_hand) >= many:
            yield result(in_hand.popleft())
        in_hand.append(hand_out(item))
    while in_hand:
        yield result(in_hand.popleft())


@dataclass(frozen=True, slots=True)
class ProcessPool(InProcess):
    """This process queries the gateway; others on this machine run the parts of a comparison."""

    helps: bool = True
    at_once: int = 2
    """Number of processes."""
    variables: Mapping[str, str] | None = None
    """Environment of the run; None for that of this process."""
    seconds_max: float = 900

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], *, needs: Collection[str] = ()
    ) -> Iterator[Done]:
        """See Workers.

        Raises:
            ReconError: what the work itself raises.
            ClusterError: a part's process was killed from outside each time, or takes too long.
        """
        given = os.environ if self.variables is None else self.variables
        variables = {name: given[name] for name in needs if name in given}
        own = _Processes(self.at_once, variables=variables, seconds_max=self.seconds_max)
        with closing(own) as processes:
            yield from _in_order(
                items,
                deque(),
                many=self.at_once + WAITING_MAX,
                hand_out=partial(processes.hand_out, work),
                result=processes.result,
            )


class _Processes:
    """One process per thread that had a part; the thread only writes to it and reads the result."""

    def __init__(self, at_once: int, *, variables: Mapping[str, str], seconds_max: float) -> None:
        self._variables = variables
        self._seconds_max = seconds_max
        self._threads = ThreadPoolExecutor(at_once)
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: list[OwnProcess] = []
        self._is_over = False

    def hand_out(self, work: Callable[[Item], Done], item: Item) -> "Future[Any]":
        """Submit a part to the next free process."""
        return self._threads.submit(self._done, pickle.dumps((work, item)))

    def result(self, part: "Future[Any]") -> Any:
        """Return the result of a part; see ProcessPool.each."""
        try:
            done, error = part.result(timeout=self._seconds_max)
        except TimeoutError:
            msg = (
                f"a part of the comparison was not done within {self._seconds_max:g} s "
                f"(result_seconds in cluster.toml); {START_AGAIN}"
            )
            raise ClusterError(msg) from None
        if error is not None:
            raise error
        return done

    def close(self) -> None:
        """Kill all processes, even busy ones."""
        with self._lock:
            self._is_over = True
            for own in self._all:
                own.process.kill()
        self._threads.shutdown(cancel_futures=True)
        for own in self._all:
            own.end()

    def _done(self, task: bytes) -> Answer:
        """Return the result of a part from the first process that survives it."""
        try:
            for _ in range(ATTEMPTS):
                process = self._own.process = getattr(self._own, "process", None) or self._begin()
                with suppress(OSError, EOFError):
                    process.pipe.send_bytes(task)
                    answered: Answer = pickle.loads(process.pipe.recv_bytes())  # noqa: S301 - of the process begun here
                    return answered
                self._own.process = None
        except OSError as error:
            why = error.strerror or type(error).__name__
            msg = f"a process for a part of the comparison could not be begun: {why}; {START_AGAIN}"
            return None, ClusterError(msg)
        msg = (
            f"processes over one part of the comparison were ended from outside {ATTEMPTS} times, "
            f"perhaps for want of memory; {START_AGAIN}"
        )
        return None, ClusterError(msg)

    def _begin(self) -> OwnProcess:
        with self._lock:
            if self._is_over:
                raise ProcessLookupError
            variables = {**self._variables, **pool_of(self._variables)}
            process = OwnProcess(START, variables=variables, is_quiet=True)
            self._all.append(process)
        return process


def answer(descriptor: int) -> None:
    """Main loop of such a process: run each part received and send back its result."""
    pipe = Connection(descriptor)
    with suppress(EOFError):
        while True:
            pipe.send_bytes(pickle.dumps(_outcome(pipe.recv_bytes())))
            give_back()


def _outcome(task: bytes) -> Answer:
    try:
        work, item = pickle.loads(task)  # noqa: S301 - of the process that began this
        return work(item), None
    except ReconError as error:
        return None, error
    except Exception as error:  # noqa: BLE001 - there is nobody above
        # Type and location only; the message may quote a file.
        step = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} at {Path(step.filename).name}:{step.lineno}"
        return None, ClusterError(
            f"the process of a part of the comparison met {where}; {START_AGAIN}"
        )


RETRIES = 3
"""How often a part is repeated if its worker died or it failed there."""
IN_HAND_FOR_EACH = 2
"""Parts submitted per worker thread: one in progress and one waiting."""


@contextmanager
def connected(cluster: ClusterSettings) -> Iterator[Any]:
    """Connect to the configured cluster.

    Raises:
        ConfigurationError: Dask is not installed, or the key file is missing or readable by others.
    """
    try:
        import distributed as untyped
    except ImportError:
        msg = (
            "cluster.toml names an address, but Dask is not installed: install recon with its "
            "extra `cluster` (`uv pip install 'recon[cluster]'`), or leave the address out"
        )
        raise ConfigurationError(msg) from None
    distributed: Any = untyped
    # Lost workers are reported by us instead.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if cluster.key_file is not None:
        key_of_file(cluster.key_file)
    files = {
        "tls_ca_file": str(cluster.ca_file),
        "tls_client_cert": str(cluster.certificate_file),
        "tls_client_key": str(cluster.key_file),
    }
    with distributed.Client(
        cluster.address,
        timeout=cluster.connect_seconds,
        set_as_default=False,
        security=distributed.Security(require_encryption=True, **files),
    ) as client:
        yield client


class DaskWorkers(ExitStack):
    """The workers of a cluster: connected for the first part, released at the end of the block."""

    def __init__(
        self,
        cluster: ClusterSettings,
        *,
        connect: Callable[[ClusterSettings], AbstractContextManager[Any]] = connected,
    ) -> None:
        """`connect` opens a `distributed.Client`."""
        super().__init__()
        self._cluster = cluster
        self._connect = connect
        self._client: Any = None

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], *, needs: Collection[str] = ()
    ) -> Iterator[Done]:
        """See Workers; a worker has its own environment.

        Raises:
            ClusterError: the scheduler or all workers are gone, or a part takes too long.
            ConfigurationError: a worker has another release of recon.
        """
        _ = needs
        client = self._connected()
        in_hand = deque[Any]()
        try:
            yield from _in_order(
                items,
                in_hand,
                many=IN_HAND_FOR_EACH * max(1, sum(client.ncores().values())),
                hand_out=partial(self._submitted, work),
                result=self._result,
            )
        finally:
            if in_hand and client.status == "running":
                client.cancel([*in_hand], force=True)

    @property
    def helps(self) -> bool:
        """See Workers."""
        return self._cluster.compared_at_once > 1

    def as_text(self) -> str:
        """Describe the workers that are connected.

        Raises:
            ClusterError: there are none.
        """
        client = self._connected()
        (done,) = self.each(_release, [""])
        threads = client.ncores()
        return f"{len(threads)} workers, {sum(threads.values())} threads, recon {done}"

    def _connected(self) -> Any:
        if self._client is None:
            with _stated_plainly(self._cluster):
                self._client = self.enter_context(self._connect(self._cluster))
                self._client.wait_for_workers(1, timeout=self._cluster.connect_seconds)
        return self._client

    def _submitted(self, work: Callable[[Any], Any], item: object) -> Any:
        with _stated_plainly(self._cluster):
            return self._client.submit(
                done_by, work, item, release=__version__, pure=False, retries=RETRIES
            )

    def _result(self, future: Any) -> Any:
        with _stated_plainly(self._cluster):
            try:
                return future.result(timeout=self._cluster.result_seconds)
            finally:
                future.release()


def done_by(work: Callable[[Item], Done], item: Item, *, release: str) -> Done:
    """Run a part on a worker, which must have the release that submitted it."""
    if release != __version__:
        msg = (
            f"a worker has recon {__version__}, the night is of recon {release}; install the same "
            "release on all workers, then start the night again"
        )
        raise ConfigurationError(msg)
    _made_ready()
    return work(item)


@cache
def _made_ready() -> None:
    """Prepare a worker once, whoever started it."""
    collect_seldom()
    reuse_freed_memory()


def _release(_: str) -> str:
    return __version__


@contextmanager
def _stated_plainly(cluster: ClusterSettings) -> Iterator[None]:
    """Convert Dask's exceptions to ClusterError."""
    advice = "what was done before is kept: start the night again, or leave `address` out"
    try:
        yield
    except ReconError:
        raise
    except TimeoutError as error:
        msg = (
            f"no worker of {cluster.address} (cluster.toml) was there within "
            f"{cluster.connect_seconds:g} s, or finished a part within "
            f"{cluster.result_seconds:g} s; {advice}"
        )
        raise ClusterError(msg) from error
    except (OSError, CancelledError) as error:
        raise _unreachable(cluster, advice=advice) from error
    except Exception as error:
        if type(error).__name__ == "ClosedClientError":
            raise _unreachable(cluster, advice=advice) from error
        if type(error).__name__ != "KilledWorker":
            raise
        msg = (
            f"several workers of {cluster.address} (cluster.toml) died over one part, perhaps for "
            f"want of memory; {advice}"
        )
        raise ClusterError(msg) from None


def _unreachable(cluster: ClusterSettings, *, advice: str) -> ClusterError:
    return ClusterError(f"the scheduler {cluster.address} (cluster.toml) does not answer; {advice}")
