from recon.model.step_progress import StepProgress, Way, heard_by, on_the_way


def test_work_tells_its_listener_how_much_of_all_is_done() -> None:
    """A beginning, each part as it is done, and never more than all."""
    heard: list[str] = []
    with heard_by(lambda step_progress: heard.append(str(step_progress))):
        way = Way("orders asked", of=2_500)
        way.more(2_000)
        way.more(2_000)

    assert heard == [
        "0 of 2,500 orders asked",
        "2,000 of 2,500 orders asked",
        "2,500 of 2,500 orders asked",
    ]


def test_nothing_is_told_of_nothing_nor_to_nobody() -> None:
    """Work without rows is silent, and so is the listener of another block."""
    heard: list[StepProgress] = []
    with heard_by(heard.append):
        Way("files read", of=0).more()
    Way("files read", of=3).more()

    assert heard == []


def test_parts_count_once_somebody_is_done_with_them() -> None:
    """A batch of rows is told when the next one is asked for, by its length."""
    heard: list[int] = []
    seen: list[int] = []
    with heard_by(lambda step_progress: heard.append(step_progress.done)):
        for batch in on_the_way(["abc", "de"], "rows drawn", of=5):
            seen.append(len(batch))
            assert heard[-1] == sum(seen[:-1])

    assert heard == [0, 3, 5]
