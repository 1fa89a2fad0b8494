"""How PMED finds out what to explore: estimates, models to rule out, and the cheapest displays that do so."""
