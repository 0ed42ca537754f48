"""The page for newcomers, done as it stands: `make connect` only, for it takes a whole night."""

import os

collect_ignore = [] if os.environ.get("CONNECT") else ["test_connect_page.py"]
