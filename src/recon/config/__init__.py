"""What people declare: one module for each TOML file or table of one, one loader."""
