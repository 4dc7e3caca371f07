// Decodes mutations of uploads: any error but the decoder's own ends the script. Arguments: uploads, how many.

import { decodeUpload, encodeGroups } from "../../../../../producers/browser/src/decode.js";
import { crc32c } from "../../../../../producers/browser/src/crypto/crc32c.js";
import { DeniableError } from "../../../../../producers/browser/src/errors.js";

const uploads = JSON.parse(process.argv[2]).map((text) => new Uint8Array(Buffer.from(text, "hex")));
const counts = { decoded: 0, malformed: 0, unsupported_version: 0, oversized: 0 };

// A repeatable generator (xorshift): a failure can be seen again.
let state = 2463534242;
const random = (below) => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
};

function mutated(upload) {
  const length = random(4) ? upload.length : random(upload.length + 40);
  const data = new Uint8Array(length);
  data.set(upload.subarray(0, length));
  // Half of the changes are in the headers, where the numbers are.
  for (let change = random(5); change > 0 && length; change--) data[random(random(2) ? length : Math.min(length, 60))] = random(256);
  if (random(50) === 0) data[4] = random(256);
  if (random(2) && length > 4) new DataView(data.buffer).setInt32(length - 4, crc32c(data.subarray(0, length - 4)), true);
  return data;
}

for (let turn = 0; turn < Number(process.argv[3]); turn++) {
  const data = mutated(uploads[random(uploads.length)]);
  try {
    const { id, groups } = decodeUpload(data);
    counts.decoded++;
    if (Buffer.compare(encodeGroups(id, groups), data)) throw new Error(`encoded otherwise: ${Buffer.from(data).toString("hex")}`);
  } catch (error) {
    if (!(error instanceof DeniableError)) throw error;
    counts[error.reason]++;
  }
}
console.log(JSON.stringify(counts));
