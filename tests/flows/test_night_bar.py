"""How far a night is, on Prefect's pages."""

import threading

import pytest

from flows import artifacts as bars
from flows.artifacts import NightBar, night_bar
from recon.model.step_progress import StepProgress, Way


def sent(done: int) -> StepProgress:
    """So many instructions of a thousand."""
    return StepProgress(done, 1_000, "instructions sent")


def test_rows_of_a_step_are_a_part_of_the_whole_night() -> None:
    """Half of the second of four steps is three eighths; a step ends with its sentence."""
    shown: list[tuple[float, str]] = []
    bar = NightBar(
        ["ingest", "settle", "reconcile", "report"], publish=lambda *word: shown.append(word)
    )
    bar.step_done("3 order files.")
    bar.hear(sent(400))
    bar.hear(sent(500))
    bar.show()
    bar.show()
    bar.hear(sent(1_000))
    bar.step_done("1000 sent in 20 batches.")
    bar.show()

    assert shown == [
        (25.0, "3 order files."),
        (37.5, "settle: 500 of 1,000 instructions sent"),
        (50.0, "1000 sent in 20 batches."),
    ]


def test_what_a_step_tells_reaches_prefect_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tells how far it is inside of the block is heard, and taken along."""
    monkeypatch.setattr(bars, "UPDATE_SECONDS", 0.01)
    came, shown = threading.Event(), []

    def publish(_share: float, sentence: str) -> None:
        shown.append(sentence)
        if "200 of 200" in sentence:
            came.set()

    with night_bar(["query"], publish=publish):
        Way("orders asked", of=200).more(200)
        assert came.wait(10)

    assert shown[-1] == "query: 200 of 200 orders asked"


def test_a_step_never_waits_for_prefect() -> None:
    """While Prefect does not answer, word is left and the work goes on."""
    asked, answered = threading.Event(), threading.Event()

    def hang(_share: float, _sentence: str) -> None:
        asked.set()
        assert answered.wait(60)

    bar = NightBar(["settle"], publish=hang)
    bar.hear(sent(1))
    follower = threading.Thread(target=bar.show)
    follower.start()
    assert asked.wait(10)
    for done in range(2, 1_000):
        bar.hear(sent(done))
    still_asking = follower.is_alive()
    answered.set()
    follower.join()

    assert still_asking
