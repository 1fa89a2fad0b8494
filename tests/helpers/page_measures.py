"""Measurements of a page in a browser: accessibility, contrasts, overflow, images."""

from collections.abc import Collection
from io import BytesIO
from typing import Any

import numpy as np
from axe_playwright_python.base import AXE_SCRIPT
from matplotlib.image import imread
from playwright.sync_api import Locator, Page

# Contrast of every element with text of its own to its background, as defined by WCAG 2.
_CONTRASTS = r"""() => {
  const numbers = colour => colour.match(/[\d.]+/g).map(Number);
  const brightness = colour => numbers(colour).slice(0, 3)
    .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    const colour = getComputedStyle(element).backgroundColor;
    return numbers(colour)[3] === 0 ? behind(element.parentElement) : colour;
  };
  return [...document.body.querySelectorAll("*")]
    .filter(element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(element => {
      const [a, b] = [brightness(getComputedStyle(element).color), brightness(behind(element))];
      return [element.outerHTML.slice(0, 100), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    });
}"""

_IMAGES = """() => [...document.images].filter(image => image.checkVisibility()).map(image => {
  const place = element => {
    const box = element.getBoundingClientRect();
    return [box.left, box.right, box.height];
  };
  return {
    loaded: image.complete && image.naturalWidth > 0, kind: image.className, alt: image.alt,
    place: place(image), box: place(image.parentElement),
    scrolls: getComputedStyle(image.parentElement).overflowX === "auto",
  };
})"""

_OVERHANGING = """() => [...document.body.querySelectorAll("*")]
  .filter(element => element.checkVisibility())
  .filter(element => {
    for (let outer = element.parentElement; outer; outer = outer.parentElement)
      if (getComputedStyle(outer).overflowX === "auto") return false;
    return element.getBoundingClientRect().right > innerWidth + 0.5;
  })
  .map(element => element.outerHTML.slice(0, 100))"""


# Boxes of the lines of all visible texts, cut to the boxes that scroll or hide what is outside of them.
_OVERLAPPING = """() => {
  const boxes = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (!node.data.trim() || !node.parentElement.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const box = { node, left: line.left, right: line.right, top: line.top, bottom: line.bottom };
      for (let outer = node.parentElement; outer; outer = outer.parentElement) {
        if (getComputedStyle(outer).overflowX === "visible") continue;
        const frame = outer.getBoundingClientRect();
        box.left = Math.max(box.left, frame.left);
        box.right = Math.min(box.right, frame.right);
        box.top = Math.max(box.top, frame.top);
        box.bottom = Math.min(box.bottom, frame.bottom);
      }
      if (box.right - box.left > 2 && box.bottom - box.top > 2) boxes.push(box);
    }
  }
  boxes.sort((a, b) => a.top - b.top);
  const found = [];
  boxes.forEach((one, index) => {
    for (let next = index + 1; next < boxes.length && boxes[next].top < one.bottom - 4; next++) {
      const other = boxes[next];
      if (one.node !== other.node && other.left < one.right - 1 && one.left < other.right - 1)
        found.push(`${one.node.data.trim().slice(0, 60)} | ${other.node.data.trim().slice(0, 60)}`);
    }
  });
  return found;
}"""


def accessibility_findings(page: Page, part: str | None = None, without: Collection[str] = ()) -> list[str]:
    """Return all violations that axe-core finds, in the part of a selector, and without some rules."""
    page.evaluate(AXE_SCRIPT)
    rules = {rule: {"enabled": False} for rule in without}
    found = page.evaluate("([part, rules]) => axe.run(part ?? document, { rules })", [part, rules])
    return [
        f"{one['impact']} {one['id']}: {node['html'][:120]} {node['any'][:1]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def contrasts(page: Page) -> dict[str, float]:
    """Return the contrast of each element with text of its own to its background, by its HTML."""
    return dict(sorted(page.evaluate(_CONTRASTS), key=lambda pair: -pair[1]))


def heading_levels(page: Page) -> list[int]:
    """Return the levels of the headings, in document order."""
    return [
        int(name[1])
        for name in page.locator("h1, h2, h3, h4, h5, h6").evaluate_all("all => all.map(h => h.tagName)")
    ]


def overhanging(page: Page) -> list[str]:
    """Return elements that overflow the page on the right, without those in a scrolling box."""
    return page.evaluate(_OVERHANGING)


def overlapping_texts(page: Page) -> list[str]:
    """Return pairs of texts that overlap: by more than a pixel sideways, and than the leading of a line."""
    return page.evaluate(_OVERLAPPING)


def images(page: Page) -> list[dict[str, Any]]:
    """Return the visible images; ``place`` is left, right and height."""
    return page.evaluate(_IMAGES)


def scrolls_sideways(page: Page) -> bool:
    """Return whether the page as a whole scrolls horizontally."""
    return page.evaluate(
        "() => { scrollTo(10000, 0); const moved = scrollX > 0; scrollTo(0, 0);"
        " return moved || document.documentElement.scrollWidth > innerWidth }"
    )


def right_edge(element: Locator) -> float:
    """Return the brightness of an element inside its right edge, from 0 to 255."""
    pixels = imread(BytesIO(element.screenshot()))
    return round(255 * float(np.median(pixels[:, -6:-2, :3])), 1)
