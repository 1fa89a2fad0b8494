"""`observe` of the JavaScript client, with the events of a page dispatched in Node."""

from pathlib import Path
from typing import Any

import pytest
from helpers.javascript import run_node

# Each step dispatches an event, and waits until the feedback for it has its response.
_PAGE = """
globalThis.window = new EventTarget();
globalThis.document = new EventTarget();
document.hidden = given.isHidden ?? false;
const sent = [];
globalThis.fetch = async (url, { body, keepalive }) => {
  sent.push(JSON.parse(body).clicked);
  if (!keepalive) throw new Error("does not outlive the page");
  return Response.json(...given.responses[sent.length - 1]);
};
const elements = [new EventTarget(), new EventTarget()];
const click = (index, button = 0, type = "click") =>
  elements[index].dispatchEvent(Object.assign(new Event(type), { button }));
const show = (isShown) => {
  document.hidden = !isShown;
  document.dispatchEvent(new Event("visibilitychange"));
};
const steps = {
  first: () => click(0),
  second: () => click(1),
  middle: () => click(1, 1, "auxclick"),
  right: () => click(1, 2, "auxclick"),
  hide: () => show(false),
  show: () => show(true),
  leave: () => window.dispatchEvent(new Event("pagehide")),
  stop: () => stop(),
};
const client = new BanditRank({ url: "http://s" });
const results = [];
const onFeedback = (result, clicked) => results.push([result.message ?? result, clicked]);
const ranking = { id: given.isDefault ? null : "1", items: ["a", "b"] };
const observe = () => client.observe(ranking, elements, { onFeedback, ...given.options });
if (given.isStrict) observe()();
const stop = observe();
// Events are dispatched in later tasks.
await null;
for (const step of given.steps) {
  steps[step]();
  if (!given.isHasty) await new Promise((resolve) => setTimeout(resolve));
}
await new Promise((resolve) => setTimeout(resolve));
print({ sent, results });
"""

COUNTED = [{"status": "counted"}]
RECORDED = [{"status": "recorded"}]
REPEATED = [{"status": "repeated"}]
EXPIRED = [{"detail": "too late"}, {"status": 410}]


def observe(directory: Path, steps: str, *responses: Any, **given: Any) -> dict[str, Any]:
    return run_node(directory, _PAGE, steps=steps.split(), responses=responses, **given)


@pytest.mark.parametrize(
    ("steps", "responses", "sent"),
    [
        ("first second leave", [COUNTED], ["a"]),
        ("middle leave", [COUNTED], ["b"]),
        ("right leave", [COUNTED], [None]),
        ("leave first", [COUNTED], [None]),
        ("hide leave", [COUNTED], [None]),
        ("hide show first", [COUNTED], [None]),
        ("first first second leave", [RECORDED, RECORDED, COUNTED], ["a", "b", None]),
        ("first hide show second leave leave", [RECORDED, RECORDED, COUNTED], ["a", "b", None]),
        ("stop first leave hide", [COUNTED], [None]),
        ("first stop second", [RECORDED, COUNTED], ["a", None]),
        ("first second leave", [EXPIRED], ["a"]),
        # The response to the first attempt was lost: the ranking may still be open.
        ("first second leave", [REPEATED, RECORDED, COUNTED], ["a", "b", None]),
    ],
)
def test_clicks_and_their_absence_are_reported_once(
    steps: str, responses: list[Any], sent: list[str | None], tmp_path: Path
) -> None:
    assert observe(tmp_path, steps, *responses)["sent"] == sent


def test_clicks_in_quick_succession_wait_for_the_status_of_the_first(tmp_path: Path) -> None:
    several = observe(tmp_path, "first second leave", RECORDED, RECORDED, COUNTED, isHasty=True)
    assert several["sent"] == ["a", "b", None]
    assert observe(tmp_path, "first second leave", COUNTED, isHasty=True)["sent"] == ["a"]


def test_a_hidden_page_may_stay_open(tmp_path: Path) -> None:
    options = {"finalWhenHidden": False}
    assert observe(tmp_path, "hide show first", COUNTED, options=options)["sent"] == ["a"]
    assert observe(tmp_path, "hide leave", COUNTED, options=options)["sent"] == [None]


def test_a_page_that_was_never_visible_reports_nothing(tmp_path: Path) -> None:
    assert observe(tmp_path, "leave stop", isHidden=True)["sent"] == []
    assert observe(tmp_path, "show hide", COUNTED, isHidden=True)["sent"] == [None]


def test_results_are_passed_on(tmp_path: Path) -> None:
    results = observe(tmp_path, "first second", RECORDED, EXPIRED)["results"]
    assert results == [["recorded", "a"], ["too late", "b"]]


def test_default_rankings_are_not_reported(tmp_path: Path) -> None:
    shown = observe(tmp_path, "first leave", isDefault=True)
    assert shown == {"sent": [], "results": [["ignored", "a"]]}


def test_an_observation_that_stops_at_once_reports_nothing(tmp_path: Path) -> None:
    """React's Strict Mode starts, stops and starts each effect."""
    shown = observe(tmp_path, "first leave", COUNTED, isStrict=True)
    assert shown == {"sent": ["a"], "results": [["counted", "a"]]}
