"""What programs of ours take over from whoever starts them."""

from recon.privacy.own_files import program_variables


def test_a_program_takes_over_what_python_needs_and_no_secret() -> None:
    """Keys have any name, so what goes along is named, not what stays behind."""
    needed = {"PATH": "/bin", "HOME": "/h", "PYTHONPATH": "/p", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    secrets = {"RECON_SIGN_KEY": "k", "KEY_OF_THE_SHOP": "k", "CODE_OF_ANN": "s", "AWS_KEY": "k"}
    assert program_variables({**needed, **secrets, "PREFECT_API_KEY": "k"}) == needed
