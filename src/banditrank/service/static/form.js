// Fields of forms, and sending them: while a form is sent its button waits, and what is refused is said above
// it.

import { h } from "./element.js";

export function field(id, label, control, hint) {
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    hint && h("p", { class: "m s", id: `${id}-hint` }, hint),
    control,
  );
}

export const lines = (value) =>
  value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

// Runs send() once at a time; says what went wrong in the form's own place for that.
export async function submitting(form, send) {
  const button = form.querySelector("button[type=submit]");
  const place = form.querySelector(".outcome");
  button.disabled = true;
  place.className = "outcome";
  place.textContent = "Sending…";
  try {
    place.textContent = (await send()) ?? "";
    return true;
  } catch (error) {
    place.className = "outcome refused";
    place.textContent = error.message;
    return false;
  } finally {
    button.disabled = false;
  }
}

export const outcome = () => h("p", { class: "outcome", role: "status", "data-key": "outcome" });
