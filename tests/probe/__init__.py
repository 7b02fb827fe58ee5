"""The probe: each part alone, and that it does no harm to what it watches."""
