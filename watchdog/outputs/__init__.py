"""A report as text for people and for programs. Every renderer is pure: the same report gives the same bytes."""
