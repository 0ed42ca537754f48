"""Parts of a comparison by processes of this machine, each of which does one after another.

They are begun when the first part is handed out and end with the last. Their environment holds what
Python needs, what the night says that the parts need, and nothing else of ours: no key, no
password, no database.
"""

import os
import pickle
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from recon.config.cluster import Done, InProcess, Item
from recon.model.errors import ClusterError, ReconError
from recon.model.freed_memory import give_back, pool_of
from recon.privacy.own_programs import WITHOUT_PLUGINS, program_variables

ATTEMPTS = 3
"""So often a part is begun whose process was ended from outside."""
WAITING_MAX = 1
"""Parts that are handed out beside those in work: whoever ends one has the next."""
START = (
    "from recon.model.collecting import collect_seldom; collect_seldom(); "
    f"from {__name__} import answer; answer()"
)
KEPT = (
    "what was done before is kept: start the night again, with `compared_at_once = 1` in "
    "cluster.toml where this comes again"
)

Answer = tuple[Any, ReconError | None]
"""What came of a part, or why nothing did."""


@dataclass(frozen=True, slots=True)
class ProcessPool(InProcess):
    """This process asks the gateway; others of this machine do the parts of a comparison."""

    helps: bool = True
    at_once: int = 2
    """So many processes."""
    variables: Mapping[str, str] | None = None
    """Of the night; None: those of this process."""
    seconds_max: float = 900

    def each(
        self, work: Callable[[Item], Done], items: Iterable[Item], *, needs: Collection[str] = ()
    ) -> Iterator[Done]:
        """See Workers.

        Raises:
            ReconError: what the work itself raises.
            ClusterError: the process of a part was ended from outside each time, or takes too long.
        """
        in_hand: deque[Future[Any]] = deque()
        with closing(self._begun(needs)) as processes:
            for item in items:
                if len(in_hand) >= self.at_once + WAITING_MAX:
                    yield processes.result(in_hand.popleft())
                in_hand.append(processes.hand_out(work, item))
            while in_hand:
                yield processes.result(in_hand.popleft())

    def _begun(self, needs: Collection[str]) -> "_Processes":
        given = os.environ if self.variables is None else self.variables
        variables = program_variables(os.environ) | {
            name: given[name] for name in needs if name in given
        }
        return _Processes(self.at_once, variables=variables, seconds_max=self.seconds_max)


class _Processes:
    """Processes that wait for parts or have one in work; none before there is one."""

    def __init__(self, at_once: int, *, variables: Mapping[str, str], seconds_max: float) -> None:
        self._variables = variables
        self._seconds_max = seconds_max
        # A thread for each process: it does nothing but write a part and read what came of it.
        self._threads = ThreadPoolExecutor(at_once)
        self._lock = Lock()
        self._waiting: list[subprocess.Popen[bytes]] = []
        self._all: list[subprocess.Popen[bytes]] = []
        self._is_over = False

    def hand_out(self, work: Callable[[Item], Done], item: Item) -> "Future[Any]":
        """Let the next process that is free do a part."""
        return self._threads.submit(self._done, pickle.dumps((work, item)))

    def result(self, part: "Future[Any]") -> Any:
        """What came of a part; see ProcessPool.each."""
        try:
            done, error = part.result(timeout=self._seconds_max)
        except TimeoutError:
            msg = (
                f"a part of the comparison was not done within {self._seconds_max:g} s "
                f"(result_seconds in cluster.toml); {KEPT}"
            )
            raise ClusterError(msg) from None
        if error is not None:
            raise error
        return done

    def close(self) -> None:
        """End all processes, whatever they do."""
        with self._lock:
            self._is_over = True
            for process in self._all:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._all:
            _let_go(process)

    def _done(self, task: bytes) -> Answer:
        """What came of a part, by the first process that does not die over it."""
        try:
            for _ in range(ATTEMPTS):
                process = self._free()
                if (answered := _answer_of(process, task=task)) is not None:
                    self._waiting.append(process)
                    return answered
                self._forget(process)
        except OSError as error:
            why = error.strerror or type(error).__name__
            msg = f"a process for a part of the comparison could not be begun: {why}; {KEPT}"
            return None, ClusterError(msg)
        msg = (
            f"processes over one part of the comparison were ended from outside {ATTEMPTS} times, "
            f"perhaps for want of memory; {KEPT}"
        )
        return None, ClusterError(msg)

    def _free(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._waiting:
                return self._waiting.pop()
            if self._is_over:
                raise ProcessLookupError
            process = _begin(self._variables)
            self._all.append(process)
            return process

    def _forget(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._all.remove(process)
        _let_go(process)


def _begin(variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(  # noqa: S603 - this very Python, our own module
        [sys.executable, "-P", "-c", START],
        env={**variables, **pool_of(variables), **WITHOUT_PLUGINS, **path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _answer_of(process: "subprocess.Popen[bytes]", *, task: bytes) -> Answer | None:
    """What a process makes of a part; None when it was ended from outside."""
    if process.stdin is None or process.stdout is None:
        return None
    try:
        process.stdin.write(task)
        process.stdin.flush()
        answer: Answer = pickle.load(process.stdout)  # noqa: S301 - of the process begun here
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    return answer


def _let_go(process: "subprocess.Popen[bytes]") -> None:
    """End a process, if it is not over, and close what leads to it."""
    process.kill()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):  # half a part, which nobody reads any more
            pipe.close()
    process.wait()


def answer() -> None:
    """In such a process: do the parts that come, until no more do, and say what came of each."""
    reply = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Nothing that a library prints stands in an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    tasks = os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
    while tasks.peek(1):
        pickle.dump(_outcome(tasks), reply)
        reply.flush()
        give_back()


def _outcome(tasks: BinaryIO) -> Answer:
    try:
        work, item = pickle.load(tasks)  # noqa: S301 - of the process that began this
        return work(item), None
    except ReconError as error:
        return None, error
    except Exception as error:  # noqa: BLE001 - there is nobody above
        where = _where(error)
        return None, ClusterError(f"the process of a part of the comparison met {where}; {KEPT}")


def _where(error: Exception) -> str:
    """The kind of an error and where it rose; never its words, which may quote a file."""
    step = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(step.filename).name}:{step.lineno}"
