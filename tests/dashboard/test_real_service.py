"""The dashboard with a running service."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_page import rows_of, settled
from helpers.running_service import Running, running
from playwright.sync_api import expect

from banditrank.engine._api_keys import create_key

ADS = {"name": "ads", "items": ["a", "b", "c", "d"], "n_positions": 2, "user_types": ["new", "old"]}
SHELF = {**ADS, "name": "shelf", "treatment": "equal", "utility": "nash"}
LIKED = {"new": ("a", "b"), "old": ("b", "c")}  # in this order


def play(service: Running, name: str, rounds: int) -> None:
    """Simulate users who click the items that they like."""
    for number in range(rounds):
        user_type = ("new", "old")[number % 2]
        ranking = service.ask("POST", f"/v1/surfaces/{name}/rankings", {"user_type": user_type}).json()
        clicked = next((item for item in LIKED[user_type] if item in ranking["items"]), None)
        clicked = clicked if number % 5 else None
        service.ask("POST", "/v1/feedback", {"ranking": ranking["id"], "clicked": clicked})


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running(bucket_seconds=1.0) as service:
        for surface in (ADS, SHELF):
            assert service.ask("POST", "/v1/surfaces", surface).status_code == 201
            play(service, surface["name"], 60)
        yield service


@pytest.mark.parametrize("name", ["ads", "shelf"])
def test_the_page_shows_the_document_of_the_service(name: str, service: Running, open_page: OpenPage) -> None:
    page = settled(open_page(f"{service.address}/surfaces/{name}"))
    assert page.locator(".none.bad").count() == 0
    document = service.ask("GET", f"/v1/surfaces/{name}/dashboard").json()
    expect(page.locator(".facts")).to_contain_text(f"{document['rounds']} visits counted")
    expected = [
        [f"{surface_item}, {user_type}", estimate, f"{each['low']:.3f}–{each['high']:.3f}"]
        for item, surface_item in enumerate(ADS["items"])
        for user_type, row in zip(ADS["user_types"], document["items"], strict=True)
        for each in [row[item]]
        for estimate in ["–" if each["estimate"] is None else f"{each['estimate']:.3f}"]
    ]
    assert [row[:3] for row in rows_of(page, "items")] == expected
    best = [ADS["items"][item] for item in document["best_rankings"][0]["ranking"]]
    assert page.locator(".card").first.locator("tbody th").all_inner_texts() == best
    assert page.locator("#healthy tbody tr").count() == len(document["health"])


def test_the_page_is_updated_as_the_service_learns(service: Running, open_page: OpenPage) -> None:
    page = settled(open_page(f"{service.address}/surfaces/shelf"))
    expect(page.locator("[data-chart=clicks]")).to_be_visible()
    before = service.ask("GET", "/v1/surfaces/shelf/dashboard").json()["rounds"]
    play(service, "shelf", 20)
    expect(page.locator(".facts")).to_contain_text(f"{before + 20} visits counted")
    page.locator(".latest a").first.click()
    expect(page.locator("main")).to_contain_text("not used: all users would have got this ranking")
    expect(page.locator("main")).to_contain_text("the same counts give the same ranking")


def test_a_surface_is_created_and_its_items_changed(service: Running, open_page: OpenPage) -> None:
    page = open_page(f"{service.address}/#create")
    page.get_by_label("Name", exact=True).fill("made-here")
    page.get_by_label("Items").fill("x\ny\nz")
    page.get_by_label("Positions").fill("2")
    page.get_by_label("Equal: all users").check()
    page.get_by_role("button", name="Create surface").click()
    page.wait_for_url(f"{service.address}/surfaces/made-here")
    expect(page.locator("#shown .a")).to_have_text("No ranking has been requested yet.")
    page.get_by_role("link", name="Add or retire items").click()
    page.get_by_role("button", name="Retire x").click()
    expect(page.locator("main")).to_contain_text("x was retired; its counts are kept.")
    page.get_by_label("Names").fill("w")
    page.get_by_role("button", name="Add items").click()
    expect(page.locator("main")).to_contain_text("Added w.")
    document = service.ask("GET", "/v1/surfaces/made-here").json()
    assert [item["name"] for item in document["items"] if not item["retired"]] == ["y", "z", "w"]
    assert (document["treatment"], document["utility"]) == ("equal", "nash")
    assert document["click_model"] == "single-look"


def test_a_restart_shows_a_banner(tmp_path: Path, open_page: OpenPage) -> None:
    for restarted in (False, True):
        with running(store=f"sqlite:{tmp_path / 'store.db'}") as service:
            if not restarted:
                service.ask("POST", "/v1/surfaces", ADS)
                play(service, "ads", 2)
            page = open_page(f"{service.address}/surfaces/ads")
            expect(page.locator(".facts")).to_contain_text("2 visits counted")
            expect(page.locator("#working .a")).not_to_have_text("Loading…")
            expect(page.locator("#banner")).to_contain_text("The service restarted at" if restarted else "")
            expect(page.locator(".banner")).to_have_count(int(restarted))
            page.close()


def test_a_key_opens_the_page(open_page: OpenPage) -> None:
    with running(require_keys=True) as service:
        key = create_key(service.engine.store, "reader", ["read"])
        page = open_page(service.address)
        expect(page.locator("h1")).to_have_text("API key required")
        page.get_by_label("Key").fill(key)
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("main")).to_contain_text("There are no surfaces yet.")
        assert page.get_by_role("link", name="Create a surface").count() == 0


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_shows_the_results_of_an_experiment(
    width: int, service: Running, open_page: OpenPage
) -> None:
    name = f"tested-{width}"
    arms = [{"name": "hold-out", "share": 0.3}, {"name": "later", "share": 0.0, "policy": "ucb-rank"}]
    experiment = {"name": "autumn", "arms": arms}
    service.ask("POST", "/v1/surfaces", ADS | {"name": name, "experiment": experiment})
    play(service, name, 60)
    page = settled(open_page(f"{service.address}/surfaces/{name}", width=width))
    results = service.ask("GET", f"/v1/surfaces/{name}/experiment").json()
    panel = page.locator("#experiment")
    expect(panel.locator("tbody tr")).to_have_count(3)
    for arm, row in zip(results["arms"], panel.locator("tbody tr").all(), strict=True):
        expect(row).to_contain_text(arm["name"])
        expect(row).to_contain_text(f"share {100 * arm['share']:.1f}%" if arm["share"] else "stopped")
        if arm["visits"]:
            # JavaScript rounds 0.5625 up, and Python to even.
            expect(row).to_contain_text(f"{arm['reward_per_visit']['estimate'] + 1e-9:.3f}")
    for arm in results["arms"][1:]:
        expect(panel).to_contain_text(arm["lift"]["sentence"][1:])
    panel.locator("summary").click()
    expect(panel.locator("details tbody tr")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    other = settled(open_page(f"{service.address}/surfaces/ads"))
    assert other.locator("#experiment").count() == 0
