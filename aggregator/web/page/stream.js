// The worker's events, while the page is visible.
// Rule 1: silence means failure: the worker sends something every few seconds.
// Rule 2: a hidden page holds no stream: a browser has few connections to one worker.

const ADDRESS = "api/events";
const SILENCE_MILLISECONDS = 15_000;
const REOPEN_MILLISECONDS = 3_000;
const FULL_MILLISECONDS = 30_000;
const MOST_LETTERS = 6_000; // of names: servers refuse long addresses, so estimates of all come instead

/**
 * Follows the events until the page goes; `handlers` take what is sent, by event. `opening` is called when
 * the worker is asked, `cutOff` when it does not answer any more, `full` when it serves too many pages.
 * `names`: collections whose estimates are wanted, null for all; the function returned replaces them.
 */
export function followEvents(handlers, { opening, cutOff, full }, names) {
  let wanted = addressOf(names);
  let source = null;
  let timer = 0;

  function openIn(milliseconds, trouble = () => {}) {
    clearTimeout(timer);
    timer = setTimeout(() => { trouble(); open(); }, milliseconds);
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function open() {
    close();
    source = new EventSource(wanted);
    source.addEventListener("error", () => {
      cutOff();
      // The browser reconnects by itself, unless it has given up.
      if (source.readyState === EventSource.CLOSED) openIn(REOPEN_MILLISECONDS);
    });
    for (const [event, handle] of Object.entries(handlers)) {
      source.addEventListener(event, ({ data }) => {
        openIn(SILENCE_MILLISECONDS, cutOff);
        handle(JSON.parse(data));
      });
    }
    source.addEventListener("full", () => {
      close();
      full();
      openIn(FULL_MILLISECONDS);
    });
    openIn(SILENCE_MILLISECONDS, cutOff);
  }

  function openWhileSeen() {
    if (document.hidden) return close();
    opening();
    open();
  }

  document.addEventListener("visibilitychange", openWhileSeen);
  openWhileSeen();

  return (others) => {
    if (addressOf(others) === wanted) return;
    wanted = addressOf(others);
    if (!document.hidden) open();
  };
}

function addressOf(names) {
  const joined = names?.join(",") ?? "";
  return names === null || joined.length > MOST_LETTERS ? ADDRESS : `${ADDRESS}?collections=${joined}`;
}
