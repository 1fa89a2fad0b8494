"""Collective utilities: utilitarian, Nash, α-fair, maximin and any function."""
