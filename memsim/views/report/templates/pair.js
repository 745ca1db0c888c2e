// Joins lines of the source with the instructions that were made of them: what is under the pointer or has the
// focus is lit on both sides, what is chosen is scrolled to on the other side. A fold opens for what is chosen in it.
(function () {
  "use strict";
  var source = document.querySelector(".source"), listing = document.querySelector(".listing");
  var lines = Array.from(source.querySelectorAll("a")), rows = Array.from(listing.querySelectorAll("a"));
  var status = document.getElementById("pair");
  var lineOf = new Map(), rowsOf = new Map(), links = new Map();
  var lit = [], kin = [], target = null;

  lines.forEach(function (line) { lineOf.set(keyOf(line), line); links.set(line.hash, line); });
  rows.forEach(function (row) {
    var key = keyOf(row);
    links.set(row.hash, row);
    if (key && !rowsOf.has(key)) rowsOf.set(key, []);
    if (key) rowsOf.get(key).push(row);
  });
  // One tab stop for all instructions; lines without an access are for the arrow keys.
  lines.forEach(function (line) { if (!line.dataset.sites) line.tabIndex = -1; });
  rows.forEach(function (row) { row.tabIndex = -1; });
  stop(rows.find(function (row) { return row.dataset.sites; }) || rows[0]);

  function keyOf(link) { return link.hash.startsWith("#line-") ? link.hash.slice(6) : link.dataset.line || ""; }
  function foldOf(row) { return row.closest("details"); }
  function isRow(link) { return listing.contains(link); }
  function stop(row) { if (stop.at) stop.at.tabIndex = -1; row.tabIndex = 0; stop.at = row; }

  // The links and folds of a line or instruction, on both sides.
  function all(link) {
    var key = keyOf(link), found = key ? (rowsOf.get(key) || []).concat(lineOf.get(key) || []) : [];
    var folds = found.filter(isRow).map(foldOf).filter(function (fold) { return fold && !fold.open; });
    return found.concat(link, folds.map(function (fold) { return fold.firstElementChild; }));
  }

  function paint(before, after, name) {
    before.forEach(function (one) { one.classList.remove(name); });
    after.forEach(function (one) { one.classList.add(name); });
    return after;
  }

  function light(event) {
    var link = event.target.closest("a");
    lit = paint(lit, link ? all(link) : [], "lit");
  }
  function dim() { lit = paint(lit, [], "lit"); }
  [source, listing].forEach(function (box) {
    box.addEventListener("mouseover", light);
    box.addEventListener("focusin", light);
    box.addEventListener("mouseleave", dim);
    box.addEventListener("focusout", dim);
  });

  function inView(row) {
    var box = listing.getBoundingClientRect(), at = row.getBoundingClientRect();
    return at.height > 0 && at.top >= box.top && at.bottom <= box.bottom;
  }

  function reveal(box, link) {
    var fold = foldOf(link);
    if (fold) fold.open = true;
    var at = link.getBoundingClientRect(), room = box.getBoundingClientRect();
    if (at.top < room.top + room.height / 8 || at.bottom > room.bottom - room.height / 8)
      box.scrollTop += at.top - room.top - box.clientHeight / 3;
  }

  // Where the pane goes for a line: from access to access; where there is none, to what comes next out of view.
  function next(made, last) {
    var accesses = made.filter(function (row) { return row.dataset.sites; });
    var stops = accesses.length ? accesses : made;
    var later = stops.slice(stops.indexOf(last) + 1).concat(stops);
    if (!last || accesses.length) return later[0] || null;
    return later.find(function (row) { return !inView(row); }) || last;
  }

  function say(link, made) {
    var line = lineOf.get(keyOf(link)), where = line && "Line " + line.querySelector(".n").textContent;
    var which = target && made.length > 1 ? ", here number " + (made.indexOf(target) + 1) : "";
    var count = made.length === 1 ? "1 instruction" : made.length + " instructions";
    if (!where) status.textContent = "This instruction is of no line of the source at the left.";
    else if (!made.length) status.textContent = where + ": none of the instructions shown.";
    else status.textContent = where + ": " + count + which + ".";
  }

  function choose(link, again) {
    var key = keyOf(link), made = rowsOf.get(key) || [], line = lineOf.get(key);
    if (isRow(link)) target = link; else target = made.length ? next(made, again ? target : null) : null;
    document.querySelectorAll(".listing a[aria-current]").forEach(function (row) { row.removeAttribute("aria-current"); });
    if (line) lines.forEach(function (one) { if (one !== line) one.removeAttribute("aria-current"); });
    if (line) line.setAttribute("aria-current", "true");
    if (target) { target.setAttribute("aria-current", "true"); stop(target); }
    if (target) reveal(listing, target);
    if (line) reveal(source, line);
    kin = paint(kin, all(link).filter(function (one) { return one !== line && one !== target; }), "kin");
    say(link, made);
  }

  function follow() {
    var site = /^#site-(\d+)$/.exec(location.hash);
    var row = site && rows.find(function (one) { return one.dataset.sites && one.dataset.sites.split(" ").includes(site[1]); });
    var link = links.get(location.hash) || row || source.querySelector("a[aria-current]");
    if (link) choose(link, false);
  }

  source.addEventListener("click", function (event) {
    var line = event.target.closest("a");
    if (line && line.hash === location.hash) choose(line, true);
  });

  // Up and down in the instructions that are in view, folds too; left and right from one side to the other.
  document.addEventListener("keydown", function (event) {
    var at = document.activeElement, other = null;
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === "ArrowRight" && lines.includes(at)) other = target && keyOf(target) === keyOf(at) ? target : next(rowsOf.get(keyOf(at)) || [], null);
    else if (event.key === "ArrowLeft" && isRow(at)) other = lineOf.get(keyOf(at)) || null;
    else if (isRow(at) && /^(ArrowUp|ArrowDown|Home|End)$/.test(event.key)) {
      var stops = Array.from(listing.querySelectorAll("a, summary")).filter(function (one) {
        return one.matches("summary") || !foldOf(one) || foldOf(one).open;
      });
      var place = { ArrowUp: stops.indexOf(at) - 1, ArrowDown: stops.indexOf(at) + 1, Home: 0, End: stops.length - 1 }[event.key];
      other = stops[place] || null;
    }
    if (!other) return;
    event.preventDefault();
    other.focus();
    if (other.matches("a")) other.click();
  });
  window.addEventListener("hashchange", follow);
  follow();
})();
