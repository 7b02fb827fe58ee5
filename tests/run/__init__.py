"""`pardbg run`: what it sets, what it leaves alone, and that nothing of it stays."""
