/* Pages whose picture changes, with no kernel and no server.

   A <form class="explorer" data-states="NAME"> holds selects or sliders, and an element .shown with what is
   shown where no script runs. NAME.js beside this file is loaded once the form is looked at. It
   calls explorers.found(NAME, {templates, states}): a state is [number of its template, values
   for the holes {0}, {1}, ... in it], under the controls' values joined by "|".
   A script loads a script because a page from the file system may not fetch. */
"use strict";

const explorers = (() => {
  const here = new URL(".", document.currentScript.src);
  const waiting = {};

  function load(name) {
    waiting[name] ??= {};
    return (waiting[name].promise ??= new Promise((resolve, reject) => {
      waiting[name].resolve = resolve;
      const script = document.createElement("script");
      script.src = new URL(`${name}.js`, here);
      script.onerror = reject;
      document.head.append(script);
    }));
  }

  function show(form, { templates, states }) {
    const key = [...form.querySelectorAll("select, input")].map((control) => control.value);
    const [number, ...values] = states[key.join("|")];
    const filled = templates[number].replace(/\{(\d+)\}/g, (_, hole) => values[hole]);
    form.querySelector(".shown").innerHTML = filled;
  }

  async function open(form) {
    const found = await load(form.dataset.states);
    form.querySelector("fieldset").hidden = false;
    form.addEventListener("input", () => show(form, found));
    form.addEventListener("submit", (event) => event.preventDefault());
    show(form, found);
  }

  function start() {
    const seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        open(target);
      }
    });
    document.querySelectorAll("form.explorer").forEach((form) => seen.observe(form));
  }

  document.addEventListener("DOMContentLoaded", start);
  return { found: (name, states) => waiting[name].resolve(states) };
})();
