"""Baselines: policies of other papers, each implemented from its paper."""
