"""Click models fitted to click logs: one module a model, their scores, and the choice among them."""
