"""A small real job that hangs in a planted way, for `pardbg demo` to scan."""
