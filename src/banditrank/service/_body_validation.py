"""Errors of request bodies, in the words of the engine's errors.

msgspec decodes valid bodies, but its messages name neither the rule nor the value. A body that it rejects is
therefore compared once more with the types of its schema, which is slow only for invalid requests.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from banditrank.errors import InvalidInputError, UnknownFieldError, UnknownNameError, one_line

RULE = "rule"
"""Key of ``msgspec.Meta.extra`` for a rule that replaces the one derived from a type."""

_BODY = "body"  # names the body as a whole
_MAX_KEY_LENGTH = 64  # of unknown fields and keys, in messages
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,63})")  # int() would also accept what msgspec rejects
_MSGSPEC_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_JSON_TYPES: dict[type[inspect.Type], tuple[type, ...]] = {
    inspect.BoolType: (bool,),
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.StrType: (str,),
    inspect.ListType: (list,),
    inspect.StructType: (dict,),
    inspect.DictType: (dict,),
    inspect.NoneType: (type(None),),
}
_NOUNS: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "a string",
    inspect.ListType: "a list",
    inspect.StructType: "an object",
    inspect.DictType: "an object",
    inspect.NoneType: "null",
}


def body_error(schema: Any, content: bytes | bytearray, reason: msgspec.ValidationError) -> InvalidInputError:
    """Return the error of a body that does not conform to its schema.

    Parameters
    ----------
    schema
        Type of the body.
    content
        The body as JSON.
    reason
        The error of msgspec; its message is used only if no rule is found that the body breaks.

    Raises
    ------
    UnicodeDecodeError
        If the body is not UTF-8 behind the first error that msgspec found.

    Examples
    --------
    >>> from banditrank.service._schemas import FeedbackBatchRequest
    >>> content = b'{"feedback": [{"ranking": "r1"}, {"ranking": "r2", "reward": 2}]}'
    >>> try:
    ...     msgspec.json.decode(content, type=FeedbackBatchRequest)
    ... except msgspec.ValidationError as error:
    ...     print(body_error(FeedbackBatchRequest, content, error))
    feedback[1].reward must be a number from 0 to 1, got 2
    """
    try:
        value = msgspec.json.decode(content)
        error = next(_errors(inspect.type_info(schema), value, ""), None)
    except (msgspec.DecodeError, RecursionError):  # it ends where msgspec found the first error
        error = None
    if error is not None:
        return error
    message = str(reason)
    found = _MSGSPEC_PATH.search(message)
    field = found["path"] if found else ""
    return InvalidInputError(field or _BODY, "must conform to its schema", one_line(message))


def _errors(kind: inspect.Type, value: Any, path: str) -> Iterator[InvalidInputError]:
    """Yield the errors of a value, in the order of the body; there may be none that this function knows."""
    alternatives = _alternatives(kind)
    matching = next((one for one in alternatives if _has_json_type(one, value)), None)
    literal = next((one for one in alternatives if isinstance(one, inspect.LiteralType)), None)
    if literal is not None:
        if value not in literal.values and (value is not None or matching is None):
            yield UnknownNameError(path or _BODY, value, map(str, literal.values))
    elif matching is None:
        yield InvalidInputError(path or _BODY, _rule(kind), value)
    elif isinstance(matching, inspect.StructType):
        structs = {one.tag: one for one in alternatives if isinstance(one, inspect.StructType)}
        yield from _tagged_errors(structs, matching.tag_field, value, path)
    elif not _is_in_range(matching, value):
        yield InvalidInputError(path, _rule(kind), len(value) if isinstance(value, list | dict) else value)
    elif isinstance(matching, inspect.ListType):
        for number, element in enumerate(value):
            yield from _errors(matching.item_type, element, f"{path}[{number}]")
    elif isinstance(matching, inspect.DictType):
        for key, element in value.items():
            yield from _errors(matching.key_type, _key_value(matching.key_type, key), f"{path}.{_key(key)}")
            yield from _errors(matching.value_type, element, f"{path}.{_key(key)}")


def _tagged_errors(
    structs: dict[Any, inspect.StructType], tag_field: str | None, value: dict[str, Any], path: str
) -> Iterator[InvalidInputError]:
    """Yield the errors of an object, which has the schema that its tag names if there are several."""
    tag = None if tag_field is None else value.get(tag_field)
    if tag_field is not None and (not isinstance(tag, str) or tag not in structs):
        yield UnknownNameError(f"{path}.{tag_field}", tag, map(str, structs))
    else:
        yield from _struct_errors(structs[tag], value, path)


def _struct_errors(kind: inspect.StructType, value: dict[str, Any], path: str) -> Iterator[InvalidInputError]:
    prefix = f"{path}." if path else ""
    fields = {field.encode_name: field for field in kind.fields}
    for key, element in value.items():
        if key in fields:
            yield from _errors(fields[key].type, element, prefix + key)
        elif key == kind.tag_field:
            continue
        elif kind.forbid_unknown_fields:
            yield UnknownFieldError(prefix + _key(key), fields)
    for name, field in fields.items():
        if field.required and name not in value:
            yield InvalidInputError(prefix + name, "must be given", sorted(value))


def _key(key: str) -> str:
    """Return a key that the client chose, short and printable."""
    start = key[:_MAX_KEY_LENGTH]
    return start if start and start.isprintable() else repr(start)


def _key_value(kind: inspect.Type, key: str) -> Any:
    """Return a key as a number where its type is one: in JSON all keys are strings."""
    is_number = any(isinstance(one, inspect.IntType) for one in _alternatives(kind))
    return int(key) if is_number and _WHOLE_NUMBER.fullmatch(key) else key


def _alternatives(kind: inspect.Type) -> list[inspect.Type]:
    """Return the types that a value may have, without metadata."""
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [one for member in kind.types for one in _alternatives(member)]
    return [kind]


def _has_json_type(kind: inspect.Type, value: Any) -> bool:
    """Return whether a value has the JSON type of a type, whatever its other rules."""
    types = _JSON_TYPES.get(type(kind))
    if types is None:
        return not isinstance(kind, inspect.LiteralType)
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _is_in_range(kind: inspect.Type, value: Any) -> bool:
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return (kind.ge is None or value >= kind.ge) and (kind.le is None or value <= kind.le)
    if isinstance(kind, inspect.StrType | inspect.ListType | inspect.DictType):
        n_min, n_max = kind.min_length or 0, kind.max_length
        fits = n_min <= len(value) and (n_max is None or len(value) <= n_max)
        pattern = getattr(kind, "pattern", None)
        return fits and (pattern is None or re.search(pattern, value) is not None)
    return True


def _rule(kind: inspect.Type) -> str:
    """Return the rule of a type: ``must be a whole number from 1 to 100``."""
    *others, last = _descriptions(kind)
    return f"must be {', '.join(others)} or {last}" if others else f"must be {last}"


def _descriptions(kind: inspect.Type) -> list[str]:
    if isinstance(kind, inspect.Metadata):
        rule = (kind.extra or {}).get(RULE)
        return [rule] if rule else _descriptions(kind.type)
    if isinstance(kind, inspect.UnionType):
        members = sorted(kind.types, key=lambda one: isinstance(one, inspect.NoneType))  # null last
        return list(dict.fromkeys(one for member in members for one in _descriptions(member)))
    return [_description(kind)]


def _description(kind: inspect.Type) -> str:
    noun = _NOUNS.get(type(kind), "valid")
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return noun + _range(kind.ge, kind.le)
    if isinstance(kind, inspect.StrType):
        return noun + _range(kind.min_length, kind.max_length, " of", " characters")
    if isinstance(kind, inspect.ListType | inspect.DictType):
        return noun + _range(kind.min_length, kind.max_length, " of", " elements")
    return noun


def _range(low: float | None, high: float | None, before: str = " from", after: str = "") -> str:
    """Return the limits in words, as `check_number` and `check_integer` do."""
    if low is None and high is None:
        return ""
    if high is None:
        return f" of at least {low:,.15g}{after}"
    return f"{before} {low or 0:,.15g} to {high:,.15g}{after}"
