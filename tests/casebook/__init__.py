"""The casebook: public reports rebuilt as files, and what pardbg makes of them."""
