
"use strict";
(() => {
  // Articles stand in the order of the log: a parent comes before its children, and a path is a part of that order.
  const ROOT = -1;
  const articles = [...document.querySelectorAll("main > article")];
  const summaries = [...document.querySelectorAll("main > aside")];
  const places = new Map(articles.map((article, at) => [article.dataset.id, at]));
  const parents = articles.map((article) => places.get(article.dataset.parent) ?? ROOT);
  const children = new Map();
  const chosen = new Map();
  const newest = articles.map((_, at) => at);
  const switchers = new Map();
  const onward = document.createElement("p");
  let leaf = articles.findLastIndex((article) => !article.hidden);

  parents.forEach((parent, at) => {
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(at);
  });
  for (let at = articles.length - 1; at >= 0; at--) {
    const parent = parents[at];
    if (parent === ROOT) continue;
    if (newest[at] > newest[parent] || !chosen.has(parent)) chosen.set(parent, at);
    newest[parent] = Math.max(newest[parent], newest[at]);
  }

  function leafBelow(at) {
    while (children.has(at)) at = chosen.get(at);
    return at;
  }

  function show(at) {
    const path = new Set();
    for (let on = leaf = at; on !== ROOT; on = parents[on]) {
      path.add(on);
      chosen.set(parents[on], on);
    }
    articles.forEach((article, on) => { article.hidden = !path.has(on); });
    for (const summary of summaries) {
      const [from, to] = [places.get(summary.dataset.from), places.get(summary.dataset.to)];
      summary.hidden = !(path.has(from) && path.has(to));
    }
    for (const on of path) if (children.get(parents[on]).length > 1) addSwitcher(on);
    onward.hidden = !children.has(leaf);
  }

  function addSwitcher(at) {
    if (switchers.has(at)) return;
    const siblings = children.get(parents[at]);
    const place = siblings.indexOf(at);
    const nav = document.createElement("nav");
    const count = document.createElement("span");
    nav.setAttribute("aria-label", "Branches");
    count.textContent = `${place + 1}/${siblings.length}`;
    const turn = (step) => siblings[place + step] !== undefined && choose(siblings[place + step], step);
    nav.append(button("‹", "Previous branch", place > 0, () => turn(-1)), count,
      button("›", "Next branch", place < siblings.length - 1, () => turn(1)));
    nav.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") turn(-1);
      if (event.key === "ArrowRight") turn(1);
    });
    articles[at].querySelector("header").append(nav);
    switchers.set(at, nav);
  }

  function button(text, name, enabled, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", name);
    made.disabled = !enabled;
    made.addEventListener("click", act);
    return made;
  }

  function choose(at, step) {
    show(leafBelow(at));
    history.replaceState(null, "", `#${articles[at].id}`);
    // The button that was pressed is hidden now: the same one of the new branch goes on, or at the end the other.
    const [back, forth] = switchers.get(at).querySelectorAll("button");
    const same = step < 0 ? back : forth;
    (same.disabled ? (step < 0 ? forth : back) : same).focus({ preventScroll: true });
    articles[at].scrollIntoView({ block: "nearest" });
  }

  function follow() {
    const named = document.getElementById(location.hash.slice(1));
    const at = articles.indexOf(named);
    if (at === -1) return false;
    if (named.hidden) show(leafBelow(at));
    named.scrollIntoView();
    return true;
  }

  onward.append(button("Go on", "Go on with what follows here", true, () => {
    const from = leaf;
    show(leafBelow(from));
    const next = articles[chosen.get(from)].querySelector("header a");
    next.focus();
  }));
  document.querySelector("main").after(onward);
  for (const summary of summaries) {
    const end = articles[places.get(summary.dataset.to)];
    if (!end) continue;
    const link = document.createElement("a");
    link.href = `#${end.id}`;
    link.textContent = `#${end.id.slice(1)}`;
    summary.querySelector("summary span").replaceChildren(" to ", link);
  }
  if (articles.length) show(leaf === -1 ? leafBelow(articles.length - 1) : leaf);
  else onward.hidden = true;
  follow();
  addEventListener("hashchange", follow);
})();
