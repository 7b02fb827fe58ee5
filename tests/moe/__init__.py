"""MoE training for real."""
