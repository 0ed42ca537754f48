import pytest

from recon.config.keys import (
    KEY_FILE_BYTES_MAX,
    SANDBOX_SIGN_KEY,
    OwnSignKey,
    SignKeys,
    key_of_file,
    secret_of,
)
from recon.config.settings import Settings, load_settings
from recon.instructions.account import gateway_account
from recon.model.errors import ConfigurationError
from recon.sandbox import SandboxOptions

KEY = "the key of the installation"
FIRST, SECOND = "100042/100042001", "100042/100042002"


def account(key, more=""):
    return f'[accounts."{key}"]\ninbox = "/i"\nreports = "/r"\n{more}\n'


@pytest.fixture
def environment(tmp_path):
    """Everything a run needs; the second account has a key of its own."""
    own = 'sign_key_env = "OUTLET_KEY"'
    (tmp_path / "merchants.toml").write_text(account(FIRST) + account(SECOND, own))
    return {
        "RECON_DATABASE_URL": "sqlite:////srv/recon/recon.sqlite",
        "RECON_GATEWAY_BASE_URL": "https://gateway.example",
        "RECON_SIGN_KEY": KEY,
        "OUTLET_KEY": "the outlet's",
        "RECON_CONFIG_DIR": str(tmp_path),
    }


def signing(environment, key):
    """The key with which the requests of an account are signed."""
    merchant_id, _, account_id = key.partition("/")
    settings = load_settings(environment)
    made = gateway_account(settings, merchant_id=merchant_id, account_id=account_id)
    return made.sign_key.get_secret_value()


def test_an_account_signs_with_its_own_key(environment):
    assert signing(environment, FIRST) == KEY
    assert signing(environment, SECOND) == "the outlet's"


def test_an_accounts_own_key_never_falls_back(environment):
    """A missing key stops the account that names it, by the variable, and no other account."""
    del environment["OUTLET_KEY"]
    assert signing(environment, FIRST) == KEY
    with pytest.raises(ConfigurationError, match=f'"{SECOND}".*OUTLET_KEY, which is not set'):
        signing(environment, SECOND)


def test_no_key_of_the_installation_is_needed_where_every_account_has_one(environment, tmp_path):
    del environment["RECON_SIGN_KEY"]
    own = key_file(tmp_path, b"the first's")
    (tmp_path / "merchants.toml").write_text(account(FIRST, f'sign_key_file = "{own}"'))
    assert signing(environment, FIRST) == "the first's"
    own.chmod(0o644)
    with pytest.raises(ConfigurationError, match="others can read it"):
        signing(environment, FIRST)


def test_a_night_needs_the_keys_of_its_own_account_only(environment):
    del environment["RECON_SIGN_KEY"]
    assert signing(environment, SECOND) == "the outlet's"
    with pytest.raises(ConfigurationError, match="or give every account its own"):
        signing(environment, FIRST)


def test_no_key_shows_when_settings_are_printed(environment):
    environment["RECON_DATABASE_URL"] = "postgresql+psycopg://recon:hunter2@db/recon"
    shown = repr(load_settings(environment)) + str(
        SignKeys.read(environment, accounts={SECOND: OwnSignKey(sign_key_env="OUTLET_KEY")})
    )
    assert not [secret for secret in (KEY, "the outlet's", "hunter2") if secret in shown]


def test_a_missing_key_names_both_ways_to_give_it(environment):
    del environment["RECON_SIGN_KEY"], environment["OUTLET_KEY"]
    with pytest.raises(ConfigurationError, match="set RECON_SIGN_KEY, or RECON_SIGN_KEY_FILE"):
        load_settings(environment)
    assert secret_of(environment, "RECON_SIGN_KEY") is None


def key_file(folder, content, mode=384):
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_file_is_read_without_its_line_end(tmp_path, mode):
    assert key_of_file(key_file(tmp_path, KEY.encode() + b"\n", mode)) == KEY


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o700])
def test_a_key_file_that_others_can_read_is_refused(tmp_path, mode):
    with pytest.raises(ConfigurationError, match=rf"mode {mode:04o}.*chmod 600 "):
        key_of_file(key_file(tmp_path, KEY.encode(), mode))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no key"),
        (b" \n", "holds no key"),
        (b"\xff\xfe", r"not UTF-8 \(byte 0\)"),
        (b"k" * (KEY_FILE_BYTES_MAX + 1), "larger than 4096 bytes: not a key"),
    ],
)
def test_a_key_file_without_a_key_is_refused(tmp_path, content, message):
    with pytest.raises(ConfigurationError, match=message):
        key_of_file(key_file(tmp_path, content))


def test_a_key_file_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        key_of_file(tmp_path / "absent")
    with pytest.raises(ConfigurationError, match="not a regular file"):
        key_of_file(tmp_path)


@pytest.mark.parametrize(
    ("url", "keys", "expected"),
    [
        ("http://127.0.0.1:8080", {"RECON_SIGN_KEY": "sandbox"}, True),
        ("http://[::1]:8080", {"RECON_SIGN_KEY": "sandbox"}, True),
        ("http://127.0.0.1:8080", {"RECON_SIGN_KEY": "real"}, False),
        ("https://gateway.example.com", {"RECON_SIGN_KEY": "sandbox"}, False),
        ("http://127.0.0.1:8080", {"RECON_SIGN_KEY": "sandbox", "OUTLET_KEY": "real"}, False),
        ("http://127.0.0.1:8080", {"RECON_SIGNER": "/run/signer"}, False),
    ],
)
def test_only_its_own_key_on_this_machine_makes_a_gateway_the_sandbox(url, keys, *, expected):
    """An address may be that of a tunnel; the key of the sandbox moves nobody's money."""
    own = {SECOND: OwnSignKey(sign_key_env="OUTLET_KEY")} if "OUTLET_KEY" in keys else {}
    read = SignKeys.read(keys, accounts=own)
    settings = Settings.model_construct(gateway_base_url=url, sign_keys=read)

    assert settings.is_sandbox is expected
    assert SandboxOptions().sign_key == SANDBOX_SIGN_KEY
