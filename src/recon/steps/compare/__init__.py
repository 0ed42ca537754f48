"""What is compared: inputs, the comparison, its files; past nights compared again."""
