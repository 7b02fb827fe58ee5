"""Pure readers of what `/proc` holds: text in, values out."""
