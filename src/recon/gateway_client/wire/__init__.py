"""The one place of the client where bytes from outside become values, hardened.

`json_reply` reads JSON replies; readers for XML and HTML replies belong here too.
"""
