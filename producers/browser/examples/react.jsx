import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { open } from "deniable-browser";
import { options } from "./options.js";

/** One client for the whole application, opened once. */
const opened = open(options);
/** What goes wrong must not stop the page. */
const withClient = (work) => opened.then(work).catch(console.warn);

const Plans = () => (
  <button id="team" onClick={() => withClient((client) => client.report("plan", "team"))}>Choose the team plan</button>
);

const Privacy = () => {
  const [takesPart, setTakesPart] = useState(false);
  const [isStored, setIsStored] = useState(true); // a page that is left before that forgets the choice
  useEffect(() => {
    withClient(async (client) => setTakesPart(!(await client.status()).optedOut));
  }, []);
  const choose = async ({ target: { checked } }) => {
    setTakesPart(checked);
    setIsStored(false);
    await withClient((client) => (checked ? client.optIn() : client.optOut()));
    setIsStored(true);
  };
  return (
    <label>
      <input id="takes-part" type="checkbox" checked={takesPart} disabled={!isStored} onChange={choose} />
      Count me, privately
    </label>
  );
};

createRoot(document.querySelector("#app")).render(<><Plans /><Privacy /></>);
