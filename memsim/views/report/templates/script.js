// Shows the details of the line, heatmap row or arrow that was chosen; without a script all details are shown.
(function () {
  "use strict";
  var page = document.documentElement;
  var details = Array.from(document.querySelectorAll(".detail"));
  var links = Array.from(document.querySelectorAll(".source a, .listing a[data-sites]"));
  var stops = Array.from(document.querySelectorAll(".source a"));
  var lines = stops.filter(function (line) { return line.dataset.sites; });
  var status = document.getElementById("status");
  page.classList.add("js");

  function sitesOf(line) { return line.dataset.sites.split(" "); }

  function show(sites) {
    details.forEach(function (one) { one.hidden = !sites.includes(one.dataset.site); });
    lines.forEach(function (line) {
      var here = sitesOf(line).some(function (site) { return sites.includes(site); });
      if (here) line.setAttribute("aria-current", "true"); else line.removeAttribute("aria-current");
    });
    var shown = details.filter(function (one) { return !one.hidden; });
    status.textContent = shown.map(function (one) { return one.dataset.answer; }).join(" ");
    document.getElementById("left-out").hidden = shown.length > 0;
  }

  function follow(first) {
    var hash = location.hash.slice(1);
    var link = links.find(function (one) { return one.getAttribute("href") === "#" + hash; });
    if (link && link.dataset.sites) show(sitesOf(link));
    else if (/^site-\d+$/.test(hash)) show([hash.slice(5)]);
    else if (first || !hash) show(page.dataset.worst ? [page.dataset.worst] : []);
    var current = document.querySelector(".source a[aria-current]");
    if (!current) return;
    var box = current.closest(".source");
    box.scrollTop = current.offsetTop - box.clientHeight / 3;
    if (/^site-/.test(hash)) document.getElementById("details").scrollIntoView();
  }

  // Up and down go from access to access in the source, or to any line whose instructions are known.
  document.addEventListener("keydown", function (event) {
    var at = stops.indexOf(document.activeElement);
    var step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (at < 0 || !step || !stops[at + step]) return;
    event.preventDefault();
    stops[at + step].focus();
    stops[at + step].click();
  });
  // An array as it is, padded or swizzled: all are drawn, and one is shown.
  document.querySelectorAll(".switch").forEach(function (box) {
    var looks = Array.from(box.querySelectorAll(".look"));
    function choose() {
      var chosen = box.querySelector("input:checked").value;
      looks.forEach(function (look) { look.hidden = look.dataset.look !== chosen; });
    }
    box.addEventListener("change", choose);
    choose();
  });
  // A heading of a table of accesses sorts it: numbers with the largest first, texts by the alphabet, then the other way.
  document.querySelectorAll(".accesses thead button").forEach(function (button) {
    button.addEventListener("click", function () {
      var heading = button.parentElement, row = heading.parentElement, at = heading.cellIndex;
      var body = row.closest("table").tBodies[0], rows = Array.from(body.rows);
      function key(one) { return one.cells[at].dataset.sort || one.cells[at].textContent.trim().replace(/,/g, ""); }
      var numeric = rows.every(function (one) { return !isNaN(key(one)) || /^[-?]$/.test(key(one)); });
      var was = heading.getAttribute("aria-sort");
      var order = was ? (was === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
      var sign = order === "ascending" ? 1 : -1;
      function value(one) { return isNaN(key(one)) ? -1 : Number(key(one)); }
      rows.sort(function (a, b) { return sign * (numeric ? value(a) - value(b) : key(a).localeCompare(key(b))); });
      Array.from(row.cells).forEach(function (cell) { cell.removeAttribute("aria-sort"); });
      heading.setAttribute("aria-sort", order);
      body.append.apply(body, rows);
    });
  });
  window.addEventListener("hashchange", function () { follow(false); });
  follow(true);
})();
