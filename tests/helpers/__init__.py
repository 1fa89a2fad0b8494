"""Code that tests share: servers, browsers, made-up data."""
