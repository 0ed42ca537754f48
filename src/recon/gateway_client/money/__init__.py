"""What the gateway says of a batch that moves money: an outcome for every row."""
