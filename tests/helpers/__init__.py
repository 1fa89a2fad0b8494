"""Code that tests share: servers, a browser, clients and made-up data."""
