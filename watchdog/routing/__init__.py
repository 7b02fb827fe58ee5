"""How MoE layers route: figures of a step, and what is ill over many steps. Pure: counts in, illnesses out."""
