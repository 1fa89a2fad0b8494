"""Monitoring, assessment and explanation of surfaces, for people."""
