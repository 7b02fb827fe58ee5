"""What this machine lets pardbg see: privileges, settings, a trial on processes of our own."""
