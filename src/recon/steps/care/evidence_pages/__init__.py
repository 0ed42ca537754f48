"""The texts that go with every folder of evidence."""
