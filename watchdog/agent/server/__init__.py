"""What an agent tells those who ask by HTTP, and whom: pages for Prometheus, what it holds of jobs, and looks at them."""
