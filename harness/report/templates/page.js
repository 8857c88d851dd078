"use strict";
// Filtering, unfolding and copying. Without this script the page shows everything and folds with <details>.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const area = document.getElementById("area");
  const text = document.getElementById("text");
  const fold = document.getElementById("fold");
  const shown = document.getElementById("shown");
  const nothing = document.getElementById("nothing");
  const chips = all(".chip");
  const rules = all(".rule").map((element) => ({
    element,
    area: element.closest(".area").dataset.area,
    verdict: element.dataset.verdict,
    words: null, // read when first searched: outputs can be long
  }));

  function filter() {
    const verdicts = new Set(chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.dataset.verdict));
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const rule of rules) {
      if (words.length && rule.words === null) rule.words = rule.element.textContent.toLowerCase();
      const hit = (!verdicts.size || verdicts.has(rule.verdict)) && (!area.value || area.value === rule.area)
        && words.every((word) => rule.words.includes(word));
      rule.element.hidden = !hit;
      count += hit;
    }
    for (const section of all(".area")) section.hidden = !section.querySelector(".rule:not([hidden])");
    nothing.hidden = count > 0;
    shown.value = count === rules.length ? `${count} rules` : `${count} of ${rules.length} rules`;
  }

  function reset() {
    for (const chip of chips) chip.ariaPressed = "false";
    area.value = text.value = "";
    filter();
  }

  // Anybody can write a link: what is no UTF-8 behind its percent signs is taken as it stands.
  function fragment() {
    const name = location.hash.slice(1);
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  }

  // A link to a rule or a point must show it, whatever is folded or filtered away.
  function reveal() {
    const target = document.getElementById(fragment());
    if (!target || !target.closest(".rule")) return;
    if (target.closest("[hidden]")) reset();
    for (let element = target; element; element = element.parentElement) if (element.tagName === "DETAILS") element.open = true;
    target.scrollIntoView();
  }

  async function copy(button) {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch { // no permission, or a browser that grants none to files: select it, the reader presses the keys
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  for (const button of all(".copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  if (!rules.length) return;

  for (const chip of chips) {
    chip.disabled = false;
    chip.addEventListener("click", () => { chip.ariaPressed = String(chip.ariaPressed !== "true"); filter(); });
  }
  document.querySelector(".fields").hidden = false;
  area.addEventListener("change", filter);
  text.addEventListener("input", filter);
  document.getElementById("reset").addEventListener("click", () => { reset(); text.focus(); });
  fold.addEventListener("click", () => {
    const open = fold.ariaPressed !== "true";
    for (const details of all("main details")) details.open = open;
    fold.ariaPressed = String(open);
    fold.textContent = open ? "Fold all" : "Unfold all";
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); text.focus(); }
    if (event.key === "Escape" && event.target === text) { text.value = ""; filter(); }
  });
  addEventListener("hashchange", reveal);
  filter(); // a browser may have kept the fields over a reload
  reveal();
})();
