// Light, dark, or as the system has it. Not a module: it runs before the page is drawn, which would flash.

(() => {
  const MODES = ["auto", "light", "dark"];
  const PLACE = "banditrank-theme";
  let mode = MODES.includes(localStorage.getItem(PLACE)) ? localStorage.getItem(PLACE) : "auto";

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
      localStorage.setItem(PLACE, mode);
      apply();
    });
  });
})();
