/* A figure that is tapped opens large, over its page; without a script its link opens the file.

   A wide screen shows it whole. A narrow one shows it at a size at which its words can be read,
   and scrolls. A tap, a click or Escape closes it. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const large = document.createElement("dialog");
  large.className = "large";
  large.addEventListener("click", () => large.close());
  large.addEventListener("keydown", (event) => event.stopPropagation()); // Sphinx takes Escape away
  document.body.append(large);
  document.querySelectorAll("article img").forEach((image) => {
    if (image.closest("a, form")) return;
    const link = document.createElement("a"); // as Sphinx makes it around a notebook's figure
    [link.className, link.href] = ["image-reference", image.src];
    image.replaceWith(link);
    link.append(image);
  });
  document.querySelectorAll("a.image-reference").forEach((link) => {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const image = link.querySelector("img").cloneNode();
      image.removeAttribute("style");
      large.replaceChildren(image);
      large.ariaLabel = image.alt;
      large.showModal();
    });
  });
});
