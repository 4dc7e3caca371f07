/** The upload: the only bytes that leave a device; the layout is in `protocol/uploads/upload.py`. */

import { crc32c } from "./crypto/crc32c.js";
import { Bytes } from "./short.js";

/**
 * Encode one report; the caller keeps to the ranges.
 *
 * @param {Uint8Array} id 16 random bytes
 * @param {bigint} fingerprint unsigned 64 bits
 * @param {number} number of the mechanism in the wire format
 * @param {number | undefined} cohort in [0, 65535], 0 if missing
 * @param {number} windowStart unix seconds, below 2^32
 * @param {number} width in the wire format
 * @param {Uint8Array} row
 * @returns {Uint8Array} 55 bytes or more
 */
export const encodeUpload = (id, fingerprint, number, cohort, windowStart, width, row) => {
  const end = row.length + 50, data = new Bytes(end + 4), view = new DataView(data.buffer);
  /** Write 4 bytes; what follows writes over those that are too many. @param {number} place @param {any} value */
  const put = (place, value) => view.setUint32(place, value, true);
  data.set([68, 78, 66, 85, 1, 1]); // "DNBU", version 1, one group
  data.set(id, 7);
  view.setBigUint64(23, fingerprint, true);
  data[31] = number;
  put(32, cohort);
  put(34, windowStart);
  data[42] = 1; // report
  put(46, width);
  data.set(row, 50);
  put(end, crc32c(data.subarray(0, end)));
  return data;
};
