// Theme: light, dark or that of the system. Not a module, so that it runs before the first paint.

(() => {
  const MODES = ["auto", "light", "dark"];
  const STORAGE_KEY = "banditrank-theme";
  let mode = MODES.includes(localStorage.getItem(STORAGE_KEY)) ? localStorage.getItem(STORAGE_KEY) : "auto";

  function apply() {
    if (mode === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", mode);
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${mode}`;
  }

  apply();
  addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      mode = MODES[(MODES.indexOf(mode) + 1) % MODES.length];
      localStorage.setItem(STORAGE_KEY, mode);
      apply();
    });
  });
})();
