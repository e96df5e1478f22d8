/* Pages whose picture changes, with no kernel and no server.

   A <form class="explorer" data-states="NAME"> holds selects and sliders, and an element .shown with
   what is shown where no script runs. NAME.js beside this file is loaded once the form is looked at
   (a page from the file system may load a script, but not fetch), and calls explorers.found(NAME, text):
   gzip, in base64, of {templates, parts, states}. A state is [number of its template, values for its
   holes {0}, {1}, ... or {*}, all], under the controls' places, from 0 on, joined by "|". A number
   among the values is one of the parts, and a state that is a string is the same as that one. */
"use strict";

const explorers = (() => {
  const here = new URL(".", document.currentScript.src);
  const waiting = {};
  const place = (control) => control.selectedIndex ?? control.value;

  function load(name) {
    const script = document.createElement("script");
    script.src = new URL(`${name}.js`, here);
    document.head.append(script);
    return new Promise((resolve) => (waiting[name] = resolve));
  }

  function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  function show(form, { templates, parts, states }) {
    const controls = [...form.querySelectorAll("select, input")], last = controls.at(-1);
    const first = (key) => (typeof states[key] === "string" ? states[key] : key);
    const reached = (control, each) =>
      controls.map((other) => (other === control ? each : place(other))).join("|");
    for (const control of controls) {
      const words = control.options ?? control.dataset.words.split("|");
      const keys = Array.from(words, (_, each) => reached(control, each));
      const there = control === last ? keys.filter((key) => key in states) : keys;
      control.disabled = new Set(there.map(first)).size === 1; // with the others as they are
      if (control.options) continue;
      control.max = there.length - 1; // which may lower its value
      control.nextElementSibling.textContent = words[control.value];
      control.setAttribute("aria-valuetext", words[control.value]);
    }
    const [number, ...given] = states[first(controls.map(place).join("|"))];
    const values = given.map((each) => (typeof each === "number" ? parts[each] : each));
    form.querySelector(".shown").innerHTML = templates[number].replace(/\{(\d+|\*)\}/g, (_, hole) =>
      hole === "*" ? values.join("") : values[hole]);
  }

  /* A button that moves the slider before it to its end, and then from its beginning. */
  function play(button) {
    const slider = button.previousElementSibling.querySelector("input");
    let timer = null;
    const step = () => {
      const ended = slider.value === slider.max;
      if (timer && ended) return button.click();
      slider.value = ended ? 0 : Number(slider.value) + 1;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    };
    button.addEventListener("click", () => {
      timer = timer ? clearInterval(timer) ?? null : step() ?? setInterval(step, 900);
      button.textContent = timer ? "stop" : "play";
    });
  }

  async function open(form) {
    const found = await unpacked(await load(form.dataset.states));
    form.addEventListener("input", () => show(form, found));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelectorAll("button").forEach(play);
    form.querySelector("fieldset").hidden = false;
    show(form, found);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const seen = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
        seen.unobserve(target);
        open(target);
      }
    });
    document.querySelectorAll("form.explorer").forEach((form) => seen.observe(form));
  });
  return { found: (name, text) => waiting[name](text) };
})();
