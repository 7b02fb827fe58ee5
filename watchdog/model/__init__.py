"""The nouns that every other package speaks: frozen, typed, and free of any I/O."""
