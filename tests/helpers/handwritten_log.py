"""Handwritten KDD Cup 2012 logs of a few lines."""

from collections.abc import Sequence
from pathlib import Path

from banditrank.logs.kdd2012._sample_log import SampleLog


def row(
    ad: int = 7, position: int = 1, user: int = 1, *, click: int = 0, impression: int = 1, depth: int = 3
) -> str:
    return f"{click}\t{impression}\t{2**64 - 1}\t{ad}\t5\t{depth}\t{position}\t6\t7\t8\t9\t{user}"


GOOD = [row(ad, position, user) for ad in (1, 2) for position in (1, 2) for user in (1, 2)]
PROFILES = ["1\t1\t3", "2\t2\t4"]


def write_log(
    directory: Path, training: Sequence[str | bytes], profiles: Sequence[str | bytes] = PROFILES
) -> SampleLog:
    log = SampleLog(directory / "training.txt", directory / "userid_profile.txt")
    for path, lines in ((log.training, training), (log.profiles, profiles)):
        raw = [line.encode() if isinstance(line, str) else line for line in lines]
        path.write_bytes(b"".join(line + b"\n" for line in raw))
    return log
