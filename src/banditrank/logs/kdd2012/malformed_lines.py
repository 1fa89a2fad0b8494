"""A second look at a file in which the query met a line that breaks a rule: which line, and which rule.

The query looks at every line, and stops at one that is not as it should be without knowing its number: it
reads the file in pieces, several at a time. Only then is the file read again, from the beginning and line by
line, at about a million lines a second.
"""

import re

from banditrank.errors import InvalidInputError
from banditrank.logs.kdd2012.files import TRAINING_COLUMNS, LogFile

# Lines that need no closer look: nearly all. Most web addresses are hashes of 19 or 20 digits.
_NUMBER = rb"(?:[0-9]{1,19}+(?![0-9])|1[0-7][0-9]{18})"
_USUAL_TRAINING_LINE = re.compile(rb"[01]\t[1-9][0-9]{0,9}+" + (rb"\t" + _NUMBER) * 10)
_USUAL_PROFILE_LINE = re.compile(rb"\t".join([_NUMBER] * 3))


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
