import pytest
from sqlalchemy import delete

from recon.files.formats.json_text import read_json_object
from recon.model.errors import ArchiveBrokenError, InputsMissingError
from recon.model.nights import Mode
from recon.model.terms import Verdict
from recon.steps.compare import rebuild
from recon.steps.compare.rebuild import rebuild_night, rebuilt, run_named
from recon.steps.compare.result_files import SUMMARY
from recon.store.nights import runs
from recon.store.schema import (
    answer_part,
    order_facts,
    order_facts_account,
    rules_version,
)
from tests.proving import losing_a_break
from tests.recon.steps.compare.written_night import newest


def again(merchant, name, *, out=None):
    """A night compared again."""
    with merchant.environment() as environment:
        return rebuild_night(name, out=out, environment=environment)


def other_rules(merchant, text):
    """Rules with something added."""
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + text)


def test_a_night_is_rebuilt_after_everything_went_on(merchant, tmp_path):
    """Later nights, files, answers, instructions and rules leave a past night's result as it was.

    The same holds for the night that came after it, and for the run that replaced it.
    """
    authorised, captured = merchant.payments("authorised"), merchant.payments("captured")
    rows = [merchant.order(one) for one in captured[:6]]
    rows += [merchant.order(one, status="paid", action="capture") for one in authorised[:3]]
    rows.append(merchant.order(captured[6], amount="7.00", currency="EUR"))
    merchant.drop("orders.csv", *rows)
    merchant.fault({"operation": "capture", "kind": "reset", "when": "after", "nth": 1})
    merchant.night()
    first = newest(merchant).run_id
    merchant.drop("orders.csv", *(row | {"amount": "3.00", "currency": "EUR"} for row in rows[1:]))
    merchant.drop("more.csv", *(merchant.order(one) for one in captured[7:12]))
    merchant.fault()
    other_rules(merchant, "\n[tolerance.EUR]\nabsolute_minor_units = 100000\n")
    merchant.wait(hours=24)
    merchant.night(date="2026-11-21")
    second = newest(merchant).run_id
    merchant.night()

    found = [again(merchant, name, out=tmp_path / name) for name in (first, second, "2026-11-20")]

    assert [one.result.digest for one in found] == [one.digest_then for one in found]
    assert len({one.digest_then for one in found}) == 3
    assert len(found[0].result.breaks) > 0
    assert (tmp_path / first / "breaks.csv").read_bytes().count(b"\n") > 1
    assert found[0].rules.tolerance == {}
    assert read_json_object(tmp_path / first / SUMMARY)["verdict"] != Verdict.NOT_PROVEN


def test_files_of_a_night_rebuilt_without_a_break_are_not_proven(merchant, tmp_path, monkeypatch):
    """What is written again is proven again, by its own files."""
    one = merchant.payments("captured")[0]
    merchant.drop("orders.csv", merchant.order(one, amount="7.00", currency="EUR"))
    merchant.night()
    monkeypatch.setattr(rebuild, "compare", losing_a_break(rebuild.compare))
    again(merchant, "2026-11-20", out=tmp_path / "out")
    assert read_json_object(tmp_path / "out" / SUMMARY)["verdict"] == Verdict.NOT_PROVEN


def test_a_date_names_its_live_night(merchant):
    """A dry run after a live night never stands for it, where a person names the date."""
    merchant.night()
    merchant.night(mode=Mode.DRY_RUN)
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = run_named(connection, "2026-11-20")

    assert run.mode is Mode.LIVE


def test_what_is_gone_is_named(merchant):
    """A night is never rebuilt from half of what it compared."""
    merchant.drop("orders.csv", *(merchant.order(one) for one in merchant.payments("captured")[:2]))
    merchant.night()
    run_id = newest(merchant).run_id
    merchant.as_owner(delete(rules_version))

    with pytest.raises(InputsMissingError, match=r"the rules of run .* are not stored any more"):
        again(merchant, run_id)


def test_a_run_that_never_compared_cannot_be_rebuilt(merchant):
    with merchant.environment() as environment:
        with environment.store.writing() as connection:
            now = merchant.clock()
            runs.start(connection, merchant.request, run_id="never", as_of=now, now=now)
            run = runs.get(connection, "never")
        with pytest.raises(InputsMissingError, match="did not keep what it compared"):
            rebuilt(run, environment=environment)


def test_a_night_is_rebuilt_from_what_it_sealed_alone(merchant):
    """Orders and answers may be gone from the tables; one changed file is refused."""
    merchant.drop("orders.csv", *(merchant.order(one) for one in merchant.payments("captured")[:2]))
    merchant.night()
    run_id = newest(merchant).run_id
    merchant.as_owner(*map(delete, (order_facts_account, order_facts, answer_part)))
    found = again(merchant, run_id)

    assert found.same
    assert len(found.sources.orders) == 2
    (path,) = merchant.folder.glob(f"**/archive/nights/*/*/*/{run_id}/inputs/orders.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArchiveBrokenError, match="and was sealed with"):
        again(merchant, run_id)


def test_a_result_that_was_changed_is_found(merchant):
    """A night whose stored digest is another one is told from one that rebuilds."""
    merchant.night()
    with merchant.environment() as environment, environment.store.writing() as connection:
        run = run_named(connection, "2026-11-20")
        runs.note_result(connection, run.run_id, values={"result_digest": "0" * 64})

    with merchant.environment() as environment:
        assert not rebuilt(run, environment=environment).same
