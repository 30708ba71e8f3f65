// Sorting and filtering of the run table, and links into folded sections. The page reads well without it.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    const why = target.matches(".story > li") ? target.querySelector("details.why") : null;
    if (why) why.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) reveal();
  });
  if (location.hash) reveal();

  // What stands open is printed with its evidence; folded runs stay one line.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.run[open] details.why:not([open])")];
    for (const d of opened) d.open = true;
  });
  addEventListener("afterprint", () => {
    for (const d of opened) d.open = false;
    opened = [];
  });

  const table = document.getElementById("run-table");
  if (table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    rows.forEach((row, i) => { row.dataset.rank = String(i); });

    // Not recorded comes last whichever way; equals keep the order of the page: worst first.
    const compare = (column, kind, sign) => (a, b) => {
      const x = a.cells[column].dataset.v;
      const y = b.cells[column].dataset.v;
      if (x === "" || y === "") {
        if (x !== y) return x === "" ? 1 : -1;
      } else {
        const order = kind === "number" ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true });
        if (order) return sign * order;
      }
      return Number(a.dataset.rank) - Number(b.dataset.rank);
    };
    const heads = [...table.tHead.rows[0].cells];
    const sort = (head) => {
      const button = head.querySelector("button");
      const fresh = button.dataset.first || "ascending";
      const before = head.getAttribute("aria-sort");
      const next = before ? (before === "ascending" ? "descending" : "ascending") : fresh;
      for (const h of heads) h.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", next);
      rows.sort(compare(heads.indexOf(head), button.dataset.kind, next === "ascending" ? 1 : -1));
      body.append(...rows);
    };
    for (const head of heads) {
      const button = head.querySelector("button");
      if (button) button.addEventListener("click", () => sort(head));
    }

    const filter = document.getElementById("filter");
    const shown = document.getElementById("shown");
    const apply = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let n = 0;
      for (const row of rows) {
        const hit = words.every((w) => row.dataset.text.includes(w));
        row.hidden = !hit;
        n += hit ? 1 : 0;
      }
      shown.textContent = words.length ? `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")} runs` : "";
    };
    if (filter) filter.addEventListener("input", apply);
  }
  document.body.dataset.ready = "true";
})();
