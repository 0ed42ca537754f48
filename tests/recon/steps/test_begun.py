from typing import Any


def capture_one(merchant: Any) -> None:
    """A file that captures one payment."""
    one = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(one, status="paid", action="capture"))


def test_a_play_begins_again_as_it_stood(begun: Any) -> None:
    """What a test does to files, database, clocks and money is gone for the next one."""
    first = begun(capture_one)
    assert first.sqlite_path.is_file()
    started, files = first.now, sorted(first.inbox.iterdir())
    first.drop("more.csv")
    first.variables["RECON_SIGN_KEY"] = "sandbox"
    first.night()
    first.wait(hours=30)
    assert (len(first.effects()), first.instruction_states()) == (1, {"confirmed": 1})

    again = begun(capture_one)
    assert (again.now, sorted(again.inbox.iterdir())) == (started, files)
    assert (again.effects(), again.instruction_states()) == ([], {})
    again.night()
    assert len(again.effects()) == 1
