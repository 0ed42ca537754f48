"""The frames that the engine works on, and how they are grouped, numbered and sorted."""
