"""Additive counts of displays, rewards and arrivals, from which policies learn."""
