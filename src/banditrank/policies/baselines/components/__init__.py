"""What the field's policies are made of, where several share it or one file would be too long for it."""
