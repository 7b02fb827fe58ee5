"""What a rank's own probe (`collectors/probe`) keeps for others, and what can be asked of the rank through it."""
