"""Small real jobs that hang or break in planted ways: what `pardbg demo` and the live tests diagnose."""
