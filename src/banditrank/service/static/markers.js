// Markers of user types: each has a shape and a colour, which mean nothing else.

import { h } from "./element.js";

const SHAPES = [circle, square, triangle, diamond, triangleDown, cross];

// Types beyond the sixth share a neutral bar next to their names.
export const typeClass = (type) => (type < SHAPES.length ? `y${type}` : "yn");

export function marker(type, x, y, radius, classes) {
  return (SHAPES[type] ?? bar)(x, y, radius, { class: classes });
}

function circle(x, y, r, attributes) {
  return h("circle", { ...attributes, cx: x, cy: y, r });
}

function square(x, y, r, attributes) {
  const q = r * 0.9;
  return h("rect", { ...attributes, x: x - q, y: y - q, width: 2 * q, height: 2 * q });
}

function polygon(points, attributes) {
  return h("polygon", { ...attributes, points: points.map((point) => point.join()).join(" ") });
}

function triangle(x, y, r, attributes) {
  const q = r * 1.2;
  return polygon([[x, y - q], [x + q, y + q * 0.8], [x - q, y + q * 0.8]], attributes); // prettier-ignore
}

function triangleDown(x, y, r, attributes) {
  const q = r * 1.2;
  return polygon([[x, y + q], [x + q, y - q * 0.8], [x - q, y - q * 0.8]], attributes); // prettier-ignore
}

function diamond(x, y, r, attributes) {
  const q = r * 1.25;
  return polygon([[x, y - q], [x + q, y], [x, y + q], [x - q, y]], attributes); // prettier-ignore
}

function cross(x, y, r, attributes) {
  const [a, b] = [r * 1.15, r * 0.42];
  const half = [[b, -a], [b, -b], [a, -b], [a, b], [b, b], [b, a]]; // prettier-ignore
  const points = [...half, ...half.map(([px, py]) => [-px, -py])];
  return polygon(
    points.map(([px, py]) => [x + px, y + py]),
    attributes,
  );
}

function bar(x, y, r, attributes) {
  return h("rect", { ...attributes, x: x - r, y: y - r * 0.4, width: 2 * r, height: r * 0.8 });
}

export const swatch = (type) =>
  h(
    "svg",
    { width: 12, height: 12, class: typeClass(type), "aria-hidden": "true" },
    marker(type, 6, 6, 5, "mk"),
  );

export const typeName = (state, type, plain = false) =>
  h("span", { class: plain ? "ty n" : "ty" }, swatch(type), h("span", null, state.surface.user_types[type]));
