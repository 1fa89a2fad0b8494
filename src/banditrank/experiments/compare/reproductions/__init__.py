"""What the field's papers report of their own policies: a small reproduction of each."""
