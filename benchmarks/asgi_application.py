"""The service for other ASGI servers, which `servers.py` compares: ``BANDITRANK_STORE`` names its store."""

import os

from banditrank.service import Settings, create_app

application = create_app(Settings(store=os.environ["BANDITRANK_STORE"]))
