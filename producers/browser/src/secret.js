/**
 * The secret of this device. See docs/browser.md.
 *
 * Permanent responses come from 32 secret bytes by the same BLAKE2b and AES as in Python, with keys of their own for
 * each collection; no key of WebCrypto that cannot be extracted could derive those. So what is stored is an HMAC
 * key that cannot be extracted, and the 32 bytes are its tag of a fixed text: computed when a page first reports,
 * and never stored. A script of the same page could compute them too, as long as it runs there.
 */

import { Bytes, utf8 } from "./short.js";
import { randomBytes } from "./randomization/words.js";

/**
 * Return the secret, and create it unless there is one.
 *
 * @param {import("./storage.js").Storage} storage @param {import("./storage.js").Storage["change"]} change
 * @param {(state: any) => boolean} isOut
 * @returns {Promise<[epoch: string, secret: Uint8Array]>} the epoch tells it from others, and reveals nothing
 */
export const secretOf = async ({ keepsKeys }, change, isOut) => {
  const { subtle } = crypto, bytes = randomBytes(32);
  /** @param {Uint8Array} raw */
  const imported = (raw) => subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const made = [randomBytes(16).join(), keepsKeys ? await imported(bytes) : bytes];
  const [epoch, key] = await change((state) => (isOut(state) ? made : (state.secret ??= made)));
  return [epoch, new Bytes(await subtle.sign("HMAC", keepsKeys ? key : await imported(key), utf8("deniable-secret-1")))];
};
