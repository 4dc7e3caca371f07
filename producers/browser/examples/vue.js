import { createApp } from "vue/dist/vue.esm-bundler.js";
import { open } from "deniable-browser";
import { options } from "./options.js";

/** One client for the whole application, opened once. */
const opened = open(options);
/** What goes wrong must not stop the page. */
const withClient = (work) => opened.then(work).catch(console.warn);

createApp({
  // A page that is left before a choice is stored forgets it.
  data: () => ({ takesPart: false, isStored: true }),
  mounted() {
    withClient(async (client) => (this.takesPart = !(await client.status()).optedOut));
  },
  methods: {
    report: (collection, value) => withClient((client) => client.report(collection, value)),
    async choose() {
      this.isStored = false;
      await withClient((client) => (this.takesPart ? client.optIn() : client.optOut()));
      this.isStored = true;
    },
  },
  template: `
    <button id="team" @click="report('plan', 'team')">Choose the team plan</button>
    <label>
      <input id="takes-part" type="checkbox" v-model="takesPart" :disabled="!isStored" @change="choose">
      Count me, privately
    </label>
  `,
}).mount("#app");
