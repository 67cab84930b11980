// Browsers forbid workers in pages from disk; the search then runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      const load = (address) => `new Promise((done) => {
        const script = document.createElement("script");
        script.src = ${address};
        script.onload = done;
        document.body.append(script);
      })`;
      this.ready = new Promise((done) => (this.inner.loaded = done));
      this.inner.document.open();
      this.inner.document.write(`<body><script>
        postMessage = parent.postMessage.bind(parent);
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => ${load("url")}), Promise.resolve());
        ${load(JSON.stringify(String(url)))}.then(loaded);
      </script></body>`);
      this.inner.document.close();
      addEventListener("message", (event) => {
        if (event.source !== this.inner) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
