"""Programs that train, and what they are made of."""
