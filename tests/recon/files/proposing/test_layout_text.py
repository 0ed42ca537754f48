import tomllib

from recon.files.proposing.proposal import Proposal, layout_text, pattern_of


def test_a_layout_is_written_as_toml_reads_it() -> None:
    """Names with quotes, tabs and accents, lists, numbers and true; comments tell what is left."""
    layout = {
        "times": "%d.%m.%Y",
        "delimiter": "\t",
        "columns": {"amount": 'Betrag "brutto"'},
        "words": {"status": {"en attente": "pending", "Rück": "refunded"}},
        "turned": ["fee"],
        "short_decimals": True,
        "trailer": {"word": "Summe", "rows": 2},
    }
    proposal = Proposal(layout, {"words.status.x": 'which "one"?'}, ("reference_no",), ("Kunde",))
    text = layout_text(proposal, table="[layout]", files="a-*.csv")
    read = tomllib.loads(text)["layout"]
    assert read == {
        "files": "a-*.csv",
        "questions": {"words.status.x": 'which "one"?'},
        **layout,
    }
    assert "# not read: Kunde" in text
    assert "for no column is it: reference_no" in text


def test_the_pattern_of_names_leaves_out_their_numbers() -> None:
    """Days and counters differ from file to file; all else is part of the name."""
    assert pattern_of(["orders-2026-11-20.csv", "orders-2026-11-21.csv"]) == "orders-*.csv"
    assert pattern_of(["a.csv", "b.csv"]) == "*.csv"
