"""The people of approvers.toml, as a test declares them."""


def declared(*, role: str = "", limit: str = "", codes: bool = False, **names: str) -> str:
    """The tables of those people, who share a role, limits and whether they have codes."""
    return "".join(
        f'[approvers.{short}]\nname = "{name}"\n'
        + f'role = "{role}"\n' * bool(role)
        + f"limit = {{ {limit} }}\n" * bool(limit)
        + f'code_secret_env = "CODE_{short.upper()}"\n' * codes
        for short, name in names.items()
    )
