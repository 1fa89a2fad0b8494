"""Small reproductions of what papers report of their own policies, one module per paper."""
