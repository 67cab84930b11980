// Items out of sight are not laid out. Their height is guessed from what is in them, so that the page keeps its length,
// and a jump over many of them is corrected once they are known.
{
  const room = $("#papers").clientWidth;
  for (const article of $$("article.made")) {
    const image = $("img", article);
    // The attributes: asking the image itself would lay out the page.
    const [wide, high] = ["width", "height"].map((name) => Number(image?.getAttribute(name)));
    const height = image ? high * Math.min(1, room / wide) : 44 * $$("tr", article).length;
    article.style.containIntrinsicSize = `auto ${Math.round(height + 260)}px`;
  }
  const settle = (target, times = 6) => {
    target.scrollIntoView();
    if (times > 1) setTimeout(() => settle(target, times - 1), 50);
  };
  const targetOf = (hash) => document.getElementById(decodeURIComponent(hash.slice(1)));
  const go = (target) => {
    if (!target) return;
    // A link to something that a filter hides shows it.
    if (target.closest("[hidden]")) $("#filters").reset();
    setTimeout(() => settle(target));
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && !link.matches(".skip")) go(targetOf(link.hash));
  });
  addEventListener("hashchange", () => go(targetOf(location.hash)));
  if (location.hash) go(targetOf(location.hash));
  // Paper has no scrolling that would load a picture.
  addEventListener("beforeprint", () => { for (const image of $$("img")) image.loading = "eager"; });
}
