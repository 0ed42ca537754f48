import logging
import threading

import pytest

from recon.model.errors import ConfigurationError
from recon.notify.messenger import ATTACHMENT_BYTES_MAX, Message, check_address, deliver
from tests.recon.listeners import mailbox, webhook

MESSAGE = Message("RECONCILED: 1/2", "All is well.")


def _arm(hook):
    hook.silent = threading.Event()


def test_mail_and_webhook_get_words_and_file(tmp_path):
    book = tmp_path / "reconciliation.xlsx"
    book.write_bytes(b"PK sheet")
    message = Message("BREAKS OPEN: 1/2", "Two open.\nLook.", attachment=book)
    with mailbox() as box, webhook() as hook:
        problems = deliver({"mail": (box.address, message), "hook": (hook.address, message)})

    assert problems == {"mail": "", "hook": ""}
    (mail,) = box.mails
    (attached,) = mail.iter_attachments()
    assert mail["Subject"] == "BREAKS OPEN: 1/2"
    assert mail.get_body(("plain",)).get_content().splitlines() == ["Two open.", "Look."]
    assert (attached.get_filename(), attached.get_content()) == ("reconciliation.xlsx", b"PK sheet")
    (told,) = hook.bodies
    assert (told["title"], told["message"]) == ("BREAKS OPEN: 1/2", "Two open.\nLook.")
    assert told["attachments"][0]["filename"] == "reconciliation.xlsx"


def test_a_file_that_is_too_large_stays_at_home(tmp_path):
    book = tmp_path / "large.xlsx"
    with book.open("wb") as file:
        file.truncate(ATTACHMENT_BYTES_MAX + 1)
    with webhook() as hook:
        deliver({"hook": (hook.address, Message("t", "m", attachment=book))})

    assert hook.bodies[0]["attachments"] == []


@pytest.mark.parametrize(
    ("prepare", "words", "seconds"),
    [
        (lambda hook: setattr(hook, "status", 503), "answered 503", 30),
        (lambda hook: setattr(hook, "port", 9), "did not take it, or is not there", 30),
        (_arm, "gave no answer within 1 s; it may have arrived", 1),
    ],
    ids=["refused", "nobody-there", "silent"],
)
def test_a_webhook_that_fails_is_told_without_its_token(prepare, words, seconds, caplog):
    caplog.set_level(logging.DEBUG)
    with webhook() as hook:
        prepare(hook)
        problem = deliver({"hook": (hook.address, MESSAGE)}, deadline_seconds=seconds)["hook"]

    assert words in problem
    assert "token-of-the-hook" not in problem + caplog.text


def test_one_slow_address_does_not_keep_the_others():
    with mailbox() as box, webhook() as hook:
        hook.silent = box.arrived
        both = {"hook": (hook.address, MESSAGE), "mail": (box.address, MESSAGE)}
        problems = deliver(both)

    assert problems == {"hook": "", "mail": ""}


def test_a_mail_server_that_refuses_is_named():
    with mailbox() as box:
        box.refusing = True
        problem = deliver({"mail": (box.address, MESSAGE)})["mail"]

    assert problem == "mailto to 127.0.0.1 did not take it, or is not there"


def test_a_redirect_is_not_followed():
    with webhook() as hook, webhook() as elsewhere:
        hook.status, hook.location = 307, f"http://127.0.0.1:{elsewhere.port}/"
        problem = deliver({"hook": (hook.address, MESSAGE)})["hook"]

    assert "answered 307" in problem
    assert elsewhere.bodies == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("json://hooks.example/night", "not encrypted: use jsons"),
        ("mailto://user:word@mail.example?to=a@b.com", "not encrypted: use mailtos"),
        ("mailtos://user:word@mail.example?to=a@b.com&mode=insecure", "not encrypted"),
        ("mailto://127.0.0.1?smtp=mail.example&from=a@b.com&to=a@b.com", "not encrypted"),
        ("jsons://hooks.example/night?verify=no", "verify=no"),
        ("syslog://", "no service of mail or webhooks"),
        ("anna@northwind.example", "none that Apprise knows"),
        ("nonsense://host", "none that Apprise knows"),
    ],
)
def test_an_unsafe_or_unknown_address_is_refused(address, words):
    with pytest.raises(ConfigurationError, match=words) as refused:
        check_address(address)

    assert "user:word@" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("jsons://user:word@hooks.example/secret", "jsons to hooks.example"),
        ("mailtos://user:word@mail.example?to=a@b.com", "mailtos to mail.example"),
        ("slack://AAAAAAAAA/BBBBBBBBB/CCCCCCCCCCCCCCCCCCCCCCCC", "slack"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address, shown):
    assert check_address(address) == shown
