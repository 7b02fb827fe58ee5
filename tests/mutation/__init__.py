"""Rules that are broken on purpose in a copy of the tree, and the tests that must notice."""
