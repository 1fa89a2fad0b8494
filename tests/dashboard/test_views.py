"""Other views: the list of surfaces, creating a surface, its items, and explanations."""

import json
import shlex
from collections.abc import Iterator

import pytest
from helpers.browser import OpenPage, collect_failures
from helpers.dashboard_documents import Document, make
from helpers.dashboard_page import settled
from helpers.dashboard_server import Fixture, serving
from playwright.sync_api import Browser, Page, expect

NASTY = """<script>alert("1 & 'it'")</script>"""


@pytest.fixture
def server() -> Iterator[Fixture]:
    equal = make("shelf", types=("New", "Old"), treatment="equal", utility="nash", seed=4)
    with serving(make("ads", retired=("Ad 5",)), equal) as fixture:
        yield fixture


def test_the_list_links_to_each_surface(server: Fixture, open_page: OpenPage) -> None:
    page = open_page(server.address)
    rows = page.locator(".surfaces tbody tr")
    expect(rows).to_have_count(2)
    assert rows.nth(0).inner_text().split("\t") == [
        "ads",
        "Personalized",
        "4",
        "2",
        "2",
        "auto",
        "51,209",
    ]
    assert "Equal, Nash" in rows.nth(1).inner_text()
    page.get_by_role("link", name="shelf").click()
    settled(page)
    assert page.url == server.page("shelf")
    assert page.locator("#surface").input_value() == "shelf"
    page.locator("#surface").select_option("ads")
    page.wait_for_url(server.page("ads"))
    page.get_by_role("link", name="banditrank", exact=True).click()
    expect(page.locator("h1")).to_have_text("Surfaces")


def test_an_empty_list_shows_a_command(open_page: OpenPage) -> None:
    with serving() as server:
        page = open_page(server.address)
        expect(page.locator("main")).to_contain_text("There are no surfaces yet.")
        assert f"curl -X POST {server.address}/v1/surfaces" in page.inner_text("main pre")


def test_an_empty_surface_shows_a_command(open_page: OpenPage) -> None:
    with serving(make("new", rounds=0)) as server:
        page = settled(open_page(server.page("new")))
        assert f"curl -X POST {server.address}/v1/surfaces/new/rankings" in page.inner_text("#shown pre")
        assert page.inner_text("#learned .a") == "Nothing yet."
        assert page.locator(".plot").count() == 0


def test_commands_quote_names_and_omit_the_key(page: Page, server: Fixture) -> None:
    name = "it's `id` $(id)"
    server.made["new"] = make("new", types=(name, "b"), rounds=0)
    page.goto(server.page("new"))
    settled(page)
    command = shlex.split(page.inner_text("#shown pre").replace("\\\n", ""))
    assert command[:4] == ["curl", "-X", "POST", f"{server.address}/v1/surfaces/new/rankings"]
    assert command[4:-2] == ["-H", "content-type: application/json"]
    assert json.loads(command[-1]) == {"user_type": name}
    server.rights = {"br_reader": ("read",)}
    page.goto(server.page("new") + "?again")
    page.get_by_label("Key").fill("br_reader")
    page.get_by_role("button", name="Use this key").click()
    settled(page)
    assert "-H 'authorization: Bearer KEY'" in page.inner_text("#shown pre")
    expect(page.locator("#healthy .rail")).to_contain_text("for keys with the right to read")
    assert page.locator("#healthy .rail a").count() == 0  # which would be sent without the key


def test_names_are_text_and_never_markup(open_page: OpenPage) -> None:
    made = make("nasty", types=(NASTY, "b"), items=(NASTY, "<b>2</b>", "&amp;", '"'))
    with serving(made) as server:
        page = settled(open_page(server.page("nasty")))
        assert NASTY in page.inner_text("#shown")
        assert page.locator("main script, main b b, .it b").count() == 0


def test_a_surface_is_created(server: Fixture, open_page: OpenPage) -> None:
    page = open_page(server.address)
    page.get_by_role("link", name="Create a surface").click()
    expect(page.locator("h1")).to_have_text("Create a surface")
    page.get_by_label("Name", exact=True).fill("front-page")
    page.get_by_label("Items").fill("a\n\n b \nc\nd")
    page.get_by_label("Positions").fill("2")
    page.get_by_label("User types").fill("new\nold")
    page.get_by_label("Equal: all users").check()
    page.get_by_label("Utility of equal treatment").select_option("Nash")
    page.get_by_label("Position-based: users").check()
    with page.expect_request(lambda request: request.method == "POST") as sent:
        page.get_by_role("button", name="Create surface").click()
    assert sent.value.post_data_json == {
        "name": "front-page",
        "items": ["a", "b", "c", "d"],
        "n_positions": 2,
        "user_types": ["new", "old"],
        "treatment": "equal",
        "utility": "nash",
        "click_model": "position-based",
        "attribution_seconds": 1800,
    }
    page.wait_for_url(server.page("front-page"), wait_until="commit")


def away(complaints: list[str]) -> list[str]:
    """Return the errors of a page except for refused requests, which browsers log."""
    return [one for one in complaints if not one.startswith("console: Failed to load resource:")]


@pytest.fixture
def page(browser: Browser, server: Fixture) -> Iterator[Page]:
    """Open a page on which requests may be refused."""
    complaints: list[str] = []
    with browser.new_context(reduced_motion="reduce") as context:
        opened = context.new_page()
        collect_failures(opened, complaints)
        opened.goto(server.address)
        yield opened
    assert away(complaints) == []


def test_errors_are_shown_in_the_form(page: Page, server: Fixture) -> None:
    page.goto(f"{server.address}/#create")
    page.get_by_label("Name", exact=True).fill("ads")
    page.get_by_label("Items").fill("a\nb\nc")
    page.get_by_role("button", name="Create surface").click()
    expect(page.locator(".outcome")).to_have_text("there is a surface 'ads' already")
    assert page.get_by_label("Items").input_value() == "a\nb\nc"
    expect(page.get_by_role("button", name="Create surface")).to_be_enabled()


def test_items_are_added_and_retired(page: Page, server: Fixture) -> None:
    page.goto(server.page("ads"))
    settled(page)
    page.get_by_role("link", name="Add or retire items").click()
    expect(page.locator("h1")).to_have_text("Items")
    page.get_by_role("button", name="Retire Ad 1").click()
    expect(page.locator("main")).to_contain_text("Ad 1 was retired; its counts are kept.")
    row = page.locator(".items tr", has_text="Ad 1")
    expect(row).to_contain_text("Retired")
    expect(row.get_by_role("button")).to_be_focused()
    page.get_by_role("button", name="Restore Ad 5").click()
    expect(page.locator("main")).to_contain_text("Ad 5 was restored.")
    page.get_by_label("Names").fill("Ad 6\nAd 7")
    page.get_by_role("button", name="Add items").click()
    expect(page.locator("main")).to_contain_text("Added Ad 6 and Ad 7.")
    assert [item["name"] for item in server.made["ads"].surface["items"] if not item["retired"]] == [
        "Ad 2",
        "Ad 3",
        "Ad 4",
        "Ad 5",
        "Ad 6",
        "Ad 7",
    ]
    page.get_by_label("Names").fill("Ad 6")
    page.get_by_role("button", name="Add items").click()
    expect(page.locator("main")).to_contain_text("items must not be active already")
    page.get_by_role("link", name="Back to ads").click()
    expect(page.locator("#shown")).to_be_visible()


def test_items_are_requested_once(page: Page, server: Fixture) -> None:
    server.held.add("/v1/surfaces/ads")
    page.goto(server.page("ads") + "#items")
    for number in range(3):
        server.change("ads", rounds=60_000 + number)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    server.held.clear()
    expect(page.locator("h1")).to_have_text("Items")
    assert server.requests.count("GET /v1/surfaces/ads") == 1


def test_as_many_items_as_positions_must_remain(page: Page, server: Fixture) -> None:
    page.goto(server.page("ads") + "#items")
    for name in ("Ad 1", "Ad 2"):
        page.get_by_role("button", name=f"Retire {name}").click()
        expect(page.locator(".items tr", has_text=name)).to_contain_text("Retired")
    expect(page.locator("main")).to_contain_text("add an item before you retire another")
    expect(page.get_by_role("button", name="Retire Ad 3")).to_be_disabled()


def test_a_ranking_is_explained_from_the_list(page: Page, server: Fixture) -> None:
    page.goto(server.page("shelf"))
    settled(page)
    page.locator(".latest a").nth(1).click()
    ranking = server.made["shelf"].dashboard["latest_rankings"][1]["id"]
    expect(page.locator("h1")).to_have_text("Why this ranking?")
    expect(page.locator("main")).to_contain_text(ranking)
    expect(page.locator("main")).to_contain_text(
        "not used: all users would have got this ranking from these counts"
    )
    expect(page.locator("main")).to_contain_text("the same counts give the same ranking")
    assert page.locator("main table").count() == 3
    page.go_back()
    expect(page.locator("#shown")).to_be_visible()


def test_a_ranking_is_explained_by_its_id(page: Page, server: Fixture) -> None:
    page.goto(server.page("ads"))
    settled(page)
    page.get_by_role("link", name="Explain a ranking").click()
    page.get_by_label("Ranking id").fill("made-up")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".none.bad")).to_contain_text("the id was not given out here")
    page.get_by_label("Ranking id").fill(server.made["ads"].dashboard["latest_rankings"][0]["id"])
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("main")).to_contain_text("used: the ranking was made for this type")


@pytest.mark.parametrize(
    ("name", "explanation", "words"),
    [
        ("ads", {}, "used: the ranking was made for this type"),
        ("ads", {"is_type_used": False}, "not used"),
        ("shelf", {}, "not used: all users would have got this ranking from these counts"),
        ("shelf", {"is_reproduced": False}, "not used"),
    ],
)
def test_explanations_state_whether_the_user_type_was_used(
    name: str, explanation: Document, words: str, page: Page, server: Fixture
) -> None:
    server.explained = explanation
    page.goto(f"{server.page(name)}#ranking={server.made[name].dashboard['latest_rankings'][0]['id']}")
    fact = page.locator(".facts-list > div", has_text="User type")
    expect(fact.locator("dd")).to_have_text(words)


def test_explanations_name_candidates_and_pins(page: Page, server: Fixture) -> None:
    server.explained = {"candidates": [f"c{n}" for n in range(12)], "pinned": {"1": "ad", "3": "sponsor"}}
    page.goto(f"{server.page('ads')}#ranking={server.made['ads'].dashboard['latest_rankings'][0]['id']}")
    facts = page.locator(".facts-list > div")
    expect(facts.filter(has_text="Candidates").locator("dd")).to_have_text(
        "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 others"
    )
    expect(facts.filter(has_text="Pinned").locator("dd")).to_have_text(
        "ad at position 1 and sponsor at position 3"
    )
    server.explained = {}
    page.reload()
    expect(page.locator("main")).to_contain_text("the same counts give the same ranking")
    assert facts.filter(has_text="Candidates").count() == facts.filter(has_text="Pinned").count() == 0


def test_an_explanation_is_requested_again(page: Page, server: Fixture) -> None:
    page.goto(server.page("ads") + "#ranking=made-up")
    expect(page.locator(".none.bad")).to_contain_text("the id was not given out here")
    server.made["ads"].dashboard["latest_rankings"][0]["id"] = "made-up"
    server.explained = {"outcome": {"state": "pending", "clicks": []}}
    page.get_by_label("Ranking id").fill("made-up")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("main")).to_contain_text("No feedback yet.")
    server.explained = {}
    page.get_by_role("link", name="Back to ads").click()
    expect(page.locator("#shown")).to_be_visible()  # both changes of the address would request it otherwise
    page.go_back()
    expect(page.locator("main")).to_contain_text("Clicked: ")
    assert server.requests.count("GET /v1/rankings/made-up") == 3


def test_a_malformed_url_is_an_unknown_id(page: Page, server: Fixture) -> None:
    page.goto(server.page("ads") + "#ranking=%")
    expect(page.locator(".none.bad")).to_contain_text("the id was not given out here")
    page.get_by_role("link", name="Back to ads").click()
    settled(page)


def test_the_data_can_be_downloaded(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads")))
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download JSON").click()
    assert downloading.value.suggested_filename == "ads.json"
    content = downloading.value.path().read_text(encoding="utf-8")
    assert '"rounds": 51209' in content
    assert '"bucket_seconds": 1800' in content
