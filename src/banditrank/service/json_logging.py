"""Structured logs: one JSON object a line, on standard error."""

import json
import logging
import sys
from datetime import UTC, datetime

_USUAL = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """Formats records as JSON: when, how grave, what, and what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {key: value for key, value in vars(record).items() if key not in _USUAL}
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


def configure_json_logging() -> None:
    """Let everything be logged to standard error, structured."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").disabled = True  # requests are logged by the service, if at all
