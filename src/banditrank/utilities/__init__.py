"""Collective utilities: utilitarian, Nash, α-fair, maximin, sigmoid, ramp and custom."""
