"""The page of a surface whose rankings are drawn from a lottery."""

from copy import deepcopy

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import by_lottery, make
from helpers.dashboard_page import settled
from helpers.dashboard_server import serving
from playwright.sync_api import expect

MADE = by_lottery(make("shelf", treatment="equal", utility="nash"))


@pytest.mark.parametrize("width", [390, 1440])
def test_odds_gain_and_guarantees_are_shown(open_page: OpenPage, width: int) -> None:
    with serving(MADE) as server:
        page = settled(open_page(server.page(MADE.name), width=width))
        expect(page.locator("#shown .a")).to_contain_text(
            "All users have the same odds in a lottery over 2 rankings."
        )
        rows = page.locator("#shown .card tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("62.5%")
        fair = page.locator("#fair")
        expect(fair.locator(".a")).to_contain_text("One lottery for all users")
        expect(fair).to_contain_text(MADE.dashboard["lottery"]["summary"])
        guarantees = fair.locator("figure", has_text="Guarantees").locator("tbody tr")
        expect(guarantees.nth(0)).to_contain_text("exposure of Ad 1")
        expect(guarantees.nth(0)).to_contain_text("0.041–0.055yes0.284")
        expect(guarantees.nth(1)).to_contain_text("no")
        expect(page.locator("#working")).not_to_contain_text("Exploration share")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_conflict_of_guarantees_is_shown(open_page: OpenPage) -> None:
    conflict = "guarantees cannot all be kept: the largest common factor is 0.7"
    made = deepcopy(MADE)
    made.dashboard["lottery"] |= {"conflict": conflict, "guarantees": []}
    with serving(made) as server:
        page = settled(open_page(server.page(made.name)))
        expect(page.locator("#fair .bad")).to_have_text(
            f"By the estimates, the {conflict}. The odds below are those without guarantees."
        )
