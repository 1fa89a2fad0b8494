"""A second look at a file: whether the query saw all of it, and which line breaks which rule.

The query looks at every line that it is given, and stops at one that is not as it should be without knowing
its number: it reads the file in pieces, several at a time. Only then is the file read again, from the
beginning and line by line, at about a million lines a second.

DuckDB's reader does not give it every line as it is. It drops a last line of several buffers (32 MB each)
without a word, and what it takes for the end of a column at a line's end. So newlines are counted and that
byte is looked for, which takes seconds for a gigabyte.
"""

import re

from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.logs.kdd2012.files import TRAINING_COLUMNS, LogFile, chunks
from banditrank.logs.kdd2012.queries import SEPARATOR

# Lines that need no closer look: nearly all. Most web addresses are hashes of 19 or 20 digits.
_NUMBER = rb"(?:[0-9]{1,19}+(?![0-9])|1[0-7][0-9]{18})"
_USUAL_TRAINING_LINE = re.compile(rb"[01]\t[1-9][0-9]{0,8}+" + (rb"\t" + _NUMBER) * 10)
_USUAL_PROFILE_LINE = re.compile(rb"\t".join([_NUMBER] * 3))


def check_all_was_read(file: LogFile, n_lines: int) -> None:
    """Raise an error unless the lines that the query saw are all of the file's, as they are in the file."""
    count, as_they_are = 0, True
    with file.path.open("rb") as content:
        for chunk in chunks(content):
            count += chunk.count(b"\n")
            as_they_are = as_they_are and SEPARATOR not in chunk
    if count != n_lines or not as_they_are:
        failure = BanditRankError(
            f"reading {file.path.name} failed: of {count:,} lines {n_lines:,} were read"
        )
        raise first_malformed_line(file) or failure


def first_malformed_line(file: LogFile) -> InvalidInputError | None:
    """Return what is wrong with the first line that breaks a rule; None if none does."""
    usual = _USUAL_TRAINING_LINE if file.columns == TRAINING_COLUMNS else _USUAL_PROFILE_LINE
    for number, line in enumerate(file.lines(), start=1):
        if usual.fullmatch(line) is None and (problem := file.line_error(number, line)):
            return problem
    return None


def contradicting_lines(profiles: LogFile, user: int) -> InvalidInputError:
    """Return the error for a user whose lines in the profile file disagree about the gender."""
    first: tuple[int, int] | None = None
    for number, line in enumerate(profiles.lines(), start=1):
        identifier, gender, _ = line.split(b"\t")
        if int(identifier) != user:
            continue
        if first is None:
            first = number, int(gender)
        elif int(gender) != first[1]:
            place = f"{profiles.path.name} line {number:,}: Gender"
            rule = f"must be that of user {user} in line {first[0]:,}, which is {first[1]}"
            return InvalidInputError(place, rule, int(gender))
    return InvalidInputError(profiles.role, "must not change while it is read", str(profiles.path))
