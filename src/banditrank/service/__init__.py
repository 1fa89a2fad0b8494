"""HTTP service: ASGI application, routes, dashboard pages, metrics and server."""
