"""Pure parsers: bytes in, values or `ParseError` out. One file a format; nothing here opens a file."""
