"""Settings: layers of files, the environment, and one clear sentence for every mistake."""

import pytest

from recon.config.settings import (
    CONFIG_FILE_BYTES_MAX,
    load_rules,
    load_settings,
    load_tables,
)
from recon.model.errors import ConfigurationError

MERCHANTS = """
[accounts."100042/100042001"]
name = "Northwind Trading"
inbox = "/srv/recon/inbox"
reports = "/srv/recon/reports"
ledger = { url_env = "LEDGER_URL", query = "select * from entries", columns = { amount = "sum" } }
"""
KEY = "correct horse battery staple"


@pytest.fixture
def config_dir(tmp_path):
    """A folder of the user's own configuration with one account."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "merchants.toml").write_text(MERCHANTS)
    return folder


@pytest.fixture
def environment(config_dir):
    """Everything a run needs, in variables."""
    return {
        "RECON_DATABASE_URL": "sqlite:////srv/recon/recon.sqlite",
        "RECON_GATEWAY_BASE_URL": "https://gateway.example",
        "RECON_SIGN_KEY": KEY,
        "RECON_CONFIG_DIR": str(config_dir),
    }


def test_settings_come_from_variables_and_layered_files(environment, config_dir):
    (config_dir / "gateway.toml").write_text("calls_per_second = 50\n")
    (config_dir / "rules.toml").write_text("[grace]\nhard_limit = '20bd'\n")
    settings = load_settings(environment)
    account = settings.account("100042", account_id="100042001")

    assert settings.gateway.calls_per_second == 50
    assert settings.gateway.deadline_seconds == 60
    assert settings.gateway.reply_signatures == "enforce"
    assert settings.rules.grace.hard_limit == "20bd"
    assert settings.rules.grace.refund_visible == "5bd"
    assert account.name == "Northwind Trading"
    assert account.ledger.columns == {"amount": "sum"}


@pytest.mark.parametrize("variable", ["RECON_DATABASE_URL", "RECON_GATEWAY_BASE_URL"])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_variable_is_named(environment, variable, value):
    environment.pop(variable)
    if value is not None:
        environment[variable] = value
    with pytest.raises(ConfigurationError, match=f"variable {variable} is not set.*recon doctor"):
        load_settings(environment)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gateway", "profile = 'bse'", "gateway.toml: profile: .*'base' or 'extended'"),
        ("gateway", "retries = 3", "gateway.toml: retries: unknown table or key"),
        ("gateway", "deadline_seconds = 0", "gateway.toml: deadline_seconds: must be more than 0"),
        ("gateway", "deadline_seconds = \nx = 1", "gateway.toml is not valid TOML: .*line 1"),
        ("rules", "[grace]\nhard = '1bd'", "rules.toml: grace.hard: unknown table or key"),
        ("merchants", "[account.'1/2']", "merchants.toml: account: only tables"),
        ("merchants", "accounts = 3", "merchants.toml: accounts: only tables"),
        ("merchants", "[accounts.'1/2']\ninbox = '/i'", 'accounts."1/2": reports: is missing'),
    ],
)
def test_a_mistake_in_a_file_is_named_with_file_and_key(
    environment, config_dir, name, text, message
):
    (config_dir / f"{name}.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load_settings(environment)


@pytest.mark.parametrize(
    ("ledger", "message"),
    [
        ("{}", "ledger: name one of path, url and url_env"),
        ("{ path = '/l.csv', url = 'sqlite://', query = 'q' }", "name one of path, url and"),
        ("{ url = 'sqlite:///l.sqlite' }", "ledger: a database needs a query"),
        ("{ path = '/l.csv', query = 'select 1' }", "and a file has none"),
        ("{ path = '/l.csv', colums = {} }", "ledger.colums: unknown table or key"),
    ],
)
def test_a_ledger_is_a_file_or_a_query(environment, config_dir, ledger, message):
    account = f"[accounts.'1/2']\ninbox = '/i'\nreports = '/r'\nledger = {ledger}\n"
    (config_dir / "merchants.toml").write_text(account)
    with pytest.raises(ConfigurationError, match=message):
        load_settings(environment)


def test_a_misspelt_file_is_refused(environment, config_dir):
    (config_dir / "rule.toml").write_text("[grace]\nhard_limit = '1h'\n")
    with pytest.raises(ConfigurationError, match=r"holds rule\.toml; known names: .*rules\.toml"):
        load_settings(environment)


def test_a_configuration_folder_that_is_none_is_named(environment):
    environment["RECON_CONFIG_DIR"] = "/nowhere/at/all"
    with pytest.raises(ConfigurationError, match="RECON_CONFIG_DIR names /nowhere/at/all, which"):
        load_settings(environment)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff = 1", r"gateway\.toml is not UTF-8 \(byte 0\)"),
        (b"#" * (CONFIG_FILE_BYTES_MAX + 1), "larger than 1048576 bytes"),
    ],
    ids=["no text", "too large"],
)
def test_a_file_that_is_no_text_is_refused(config_dir, content, message):
    (config_dir / "gateway.toml").write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        load_tables("gateway", config_dir=config_dir)


def test_an_account_that_is_not_declared_is_named_with_those_that_are(environment):
    with pytest.raises(ConfigurationError, match=r"no account 1/2 \(declared: 100042/100042001\)"):
        load_settings(environment).account("1", account_id="2")


def test_a_rules_file_is_laid_over_the_layers_key_by_key(tmp_path):
    layer = tmp_path / "config"
    layer.mkdir()
    (layer / "rules.toml").write_text(
        "[payment_status]\n2000 = 'pending'\n5000 = 'cancelled'\n[grace]\nhard_limit = '7bd'\n"
    )
    named = tmp_path / "strict.toml"
    named.write_text("[payment_status]\n2000 = 'authorised'\n[grace]\nrefund_visible = '1bd'\n")

    rules = load_rules(config_dir=layer, rules_file=named)

    words = {"3000": "paid", "4100": "refunded", "5000": "cancelled", "2000": "authorised"}
    assert rules.payment_status == words
    assert (rules.grace.refund_visible, rules.grace.hard_limit) == ("1bd", "7bd")
    assert rules.answer_of("2") == "not_found"
    with pytest.raises(ConfigurationError, match=r"absent\.toml does not exist"):
        load_rules(config_dir=None, rules_file=tmp_path / "absent.toml")


@pytest.mark.parametrize("name", ["rules", "gateway", "merchants", "limits", "approvers"])
@pytest.mark.parametrize(
    "nested",
    ["[" * 5_000 + "]" * 5_000, "{b = " * 3_000 + "1" + "}" * 3_000],
    ids=["list", "table"],
)
def test_a_file_that_is_nested_too_deeply_is_named(environment, config_dir, name, nested):
    (config_dir / f"{name}.toml").write_text(f"# ours\n\nlayouts = {nested}\n")
    with pytest.raises(ConfigurationError, match=rf"{name}.toml: layouts \(line 3\) is nested"):
        load_settings(environment)


@pytest.mark.parametrize(
    "key",
    ["100042/../..", "../x/1", "100042/..", "100042", "100042/", "100042/a/b", "./.", "100042/a b"],
)
def test_an_account_whose_id_leads_elsewhere_is_refused_by_name(environment, config_dir, key):
    """Both ids become part of file names: a path in one would lead out of the reports folder."""
    (config_dir / "merchants.toml").write_text(MERCHANTS.replace("100042/100042001", key))
    with pytest.raises(ConfigurationError) as refused:
        load_settings(environment)
    assert f'merchants.toml: accounts."{key}": must be "<merchant>/<account>"' in str(refused.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (MERCHANTS.replace("/srv/recon/inbox", "/srv/a\\u0000b"), ".inbox"),
        (MERCHANTS.replace("Northwind", "Acme\\u202e"), ".name"),
        (MERCHANTS.replace("100042001", "1\\u0000"), "accounts.100042/1\\u0000"),
    ],
    ids=["path", "name", "key"],
)
def test_what_no_path_or_table_could_hold_is_refused_by_its_key(environment, config_dir, text, key):
    (config_dir / "merchants.toml").write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        load_settings(environment)
    assert f"{key} holds a character that cannot be printed" in str(refused.value)
    several = MERCHANTS.replace('"select * from entries"', "'''select *\n\tfrom entries'''")
    (config_dir / "merchants.toml").write_text(several)
    assert list(load_settings(environment).accounts) == ["100042/100042001"]


@pytest.mark.parametrize(
    "address", ["https://g.example:abc", "https://g.example:99999", "https://[::1"]
)
def test_a_gateway_address_with_an_impossible_port_is_named(environment, address):
    with pytest.raises(ConfigurationError, match="RECON_GATEWAY_BASE_URL is no address"):
        load_settings(environment | {"RECON_GATEWAY_BASE_URL": address})
