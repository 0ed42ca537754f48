"""The configuration: a module for each TOML file, or table of one, and their loader."""
