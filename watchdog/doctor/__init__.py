"""What on this machine would keep pardbg from seeing: a table of small pure checks, and their text."""
