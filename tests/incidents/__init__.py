"""Incidents: kept, told, shown."""
