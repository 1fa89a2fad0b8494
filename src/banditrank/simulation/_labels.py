"""Labels of policies that are shown together: each has what tells it apart from the others."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from banditrank.errors import InvalidInputError
from banditrank.policies._base import policy_label

_NAMED_BY_LABELS = ("policy", "treatment", "utility")


class Labelled(NamedTuple):
    """A policy or a result, with what may tell it apart from others of the same label."""

    label: str
    values: Mapping[str, Any]  # parameters and settings, by name
    place: tuple[object, ...] = ()  # labels must differ only in the same place, such as a panel


def describe_policy(description: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a policy by name, from its description and those of its own class.

    Examples
    --------
    >>> describe_policy({"policy": "greedy", "alpha": 0.1, "baseline": {"policy": "fixed"}}, {"c": "2"})
    {'alpha': 0.1, 'baseline.policy': 'fixed', 'c': '2'}
    """
    shown = {name: value for name, value in description.items() if name not in _NAMED_BY_LABELS}
    return {**dict(_flat("", shown)), **parameters}


def distinct_labels(field: str, labelled: Sequence[Labelled]) -> list[str]:
    """Return the labels, with the values that differ between those of the same label appended.

    Parameters
    ----------
    field
        Name of the argument, for errors.
    labelled
        Labels and values.

    Raises
    ------
    InvalidInputError
        If labels in the same place are still equal; the message names both.

    Examples
    --------
    >>> values = [{"c": 0.5, "d": 1}, {"c": 0.25, "d": 1}]
    >>> distinct_labels("results", [Labelled("greedy", each) for each in values])
    ['greedy-c=0.5', 'greedy-c=0.25']
    """
    suffixes = distinct_suffixes([each.label for each in labelled], [each.values for each in labelled])
    labels = [each.label + suffix for each, suffix in zip(labelled, suffixes, strict=True)]
    first: dict[tuple[object, ...], int] = {}
    for index, (each, label) in enumerate(zip(labelled, labels, strict=True)):
        earlier = first.setdefault((label, *each.place), index)
        if earlier != index:
            rule = f"must have labels of their own, and numbers {earlier + 1} and {index + 1} have the same"
            raise InvalidInputError(field, rule, label)
    return labels


def policy_labels(policies: Sequence[Any], parameters: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the labels of policies that are simulated together.

    Raises
    ------
    InvalidInputError
        If two have the same label and parameters.
    """
    descriptions = [policy.describe() for policy in policies]
    return distinct_labels(
        "policy",
        [
            Labelled(policy_label(description), describe_policy(description, own))
            for description, own in zip(descriptions, parameters, strict=True)
        ],
    )


def distinct_suffixes(labels: Sequence[str], values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the values that differ between those of the same label, as text to append to the label.

    Examples
    --------
    >>> distinct_suffixes(["greedy", "greedy", "random"], [{"c": 0.5, "d": 1}, {"c": 0.25, "d": 1}, {"c": 1}])
    ['-c=0.5', '-c=0.25', '']
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for label, own in zip(labels, values, strict=True):
        groups.setdefault(label, []).append(own)
    return [_suffix(own, groups[label]) for label, own in zip(labels, values, strict=True)]


def _suffix(own: Mapping[str, Any], group: Sequence[Mapping[str, Any]]) -> str:
    names = dict.fromkeys(name for values in group for name in values)
    texts = {name: {_text(values.get(name)) for values in group} for name in names}
    differing = [name for name in names if len(texts[name]) > 1 and name in own]
    return "".join(f"-{name}={_text(own[name])}" for name in differing)


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _text(value: object) -> str:
    return "".join(str(value).split()).replace("/", "|")
