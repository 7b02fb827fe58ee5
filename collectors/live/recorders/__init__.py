"""Ways to a live rank's flight recorder that exist without preparing it: one file a way, cheapest and safest first."""
