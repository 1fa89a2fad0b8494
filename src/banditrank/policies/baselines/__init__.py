"""The field's policies, each written from its paper, in one protocol."""
