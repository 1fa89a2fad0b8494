"""Names of surfaces, experiments and arms."""

SURFACE_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
SURFACE_NAME_RULE = "up to 64 of a-z, 0-9, dot, dash and underscore, a letter or digit first"
