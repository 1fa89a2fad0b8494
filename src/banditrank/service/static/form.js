// Form fields and submission.

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

// Calls send() with the button disabled, and shows its message or error in the form.
export async function submitForm(form, send) {
  const button = form.querySelector("button[type=submit]");
  const message = form.querySelector(".outcome");
  button.disabled = true;
  message.className = "outcome";
  message.textContent = "Sending…";
  try {
    message.textContent = (await send()) ?? "";
    return true;
  } catch (error) {
    message.className = "outcome refused";
    message.textContent = error.message;
    return false;
  } finally {
    button.disabled = false;
  }
}

export const outcomeMessage = () => h("p", { class: "outcome", role: "status", "data-key": "outcome" });
