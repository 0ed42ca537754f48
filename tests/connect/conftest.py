"""The page for newcomers, done as it stands; a whole night, so in campaign `connect` only."""

import os

collect_ignore = [] if os.environ.get("CONNECT") else ["test_connect_page.py"]
