"""Components of PMED: estimates, alternative models, and the cheapest displays that rule them out."""
