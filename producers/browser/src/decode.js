/**
 * Decode uploads as an edge does, and encode any: for tests, and for clients of other kinds. No part of the client.
 *
 * @typedef {object} Group reports of one collection, one window and one cohort
 * @property {bigint} fingerprint unsigned 64 bits
 * @property {number} mechanism 1 to 7, 2 for RAPPOR of any kind: see docs/clients.md
 * @property {number} cohort in [0, 65535]
 * @property {number} windowStart unix seconds
 * @property {number} reports at least 1
 * @property {number} width buckets, or bits
 * @property {Uint8Array} rows
 */

import { crc32c } from "./crypto/crc32c.js";
import { check } from "./errors.js";

const MAX_UPLOAD_BYTES = 65_536;
const HEADER_BYTES = 23;
const GROUP_BYTES = 27;
const CRC_BYTES = 4;
const MAX_GROUPS = 64;
const MAX_WINDOW_START = 253_402_300_799;
/** "DNBU", and the version. */
const MAGIC = [68, 78, 66, 85], VERSION = 1;

/** @param {string} reason malformed, unsupported_version or oversized @throws {DeniableError} */
const refuse = (reason) => check(false, reason, `these bytes are no upload: ${reason}`);

/** @param {number} mechanism @param {number} width @returns {number} bytes of one report, 0 if there is none such */
function reportBytes(mechanism, width) {
  if (mechanism === 2) return width % 8 || width > 4096 ? 0 : width / 8;
  if (mechanism < 1 || mechanism > 7 || width < 2 || width > 2 ** 31) return 0;
  return width <= 256 ? 1 : width <= 65536 ? 2 : 4;
}

/**
 * Encode any upload.
 *
 * @param {Uint8Array} id 16 bytes @param {Group[]} groups 1 to 64
 * @returns {Uint8Array}
 * @throws {DeniableError} with the reason for which `decodeUpload` would refuse the bytes
 */
export function encodeGroups(id, groups) {
  if (groups.length < 1 || groups.length > MAX_GROUPS || id.length !== 16) refuse("malformed");
  const size = groups.reduce((sum, { rows }) => sum + GROUP_BYTES + rows.length, HEADER_BYTES + CRC_BYTES);
  const data = new Uint8Array(size), view = new DataView(data.buffer);
  data.set([...MAGIC, VERSION]);
  view.setUint16(5, groups.length, true);
  data.set(id, 7);
  let place = HEADER_BYTES;
  for (const { fingerprint, mechanism, cohort, windowStart, reports, width, rows } of groups) {
    const isRight = reports && rows.length === reports * reportBytes(mechanism, width);
    if (!isRight || windowStart > MAX_WINDOW_START) refuse("malformed");
    view.setBigUint64(place, fingerprint, true);
    view.setUint8(place + 8, mechanism);
    view.setUint16(place + 9, cohort, true);
    view.setBigUint64(place + 11, BigInt(windowStart), true);
    view.setUint32(place + 19, reports, true);
    view.setUint32(place + 23, width, true);
    data.set(rows, place + GROUP_BYTES);
    place += GROUP_BYTES + rows.length;
  }
  if (size > MAX_UPLOAD_BYTES) refuse("oversized");
  view.setInt32(place, crc32c(data.subarray(0, place)), true);
  return data;
}

/**
 * Decode an upload, with the checks of Python's decoder, in its order.
 *
 * @param {Uint8Array} data
 * @returns {{id: Uint8Array, groups: Group[]}} rows are views of `data`
 * @throws {DeniableError} and nothing else, whatever the bytes are
 */
export function decodeUpload(data) {
  if (data.length > MAX_UPLOAD_BYTES) refuse("oversized");
  if (data.length <= 4 || MAGIC.some((byte, i) => data[i] !== byte)) refuse("malformed");
  if (data[4] !== VERSION) refuse("unsupported_version");
  const end = data.length - CRC_BYTES, view = new DataView(data.buffer, data.byteOffset, data.length);
  if (end < HEADER_BYTES || view.getInt32(end, true) !== crc32c(data.subarray(0, end))) refuse("malformed");
  const count = view.getUint16(5, true);
  if (count < 1 || count > MAX_GROUPS) refuse("malformed");
  const groups = [];
  let place = HEADER_BYTES;
  while (groups.length < count) {
    if (end - place < GROUP_BYTES) refuse("malformed");
    const mechanism = view.getUint8(place + 8), width = view.getUint32(place + 23, true);
    const windowStart = Number(view.getBigUint64(place + 11, true)), reports = view.getUint32(place + 19, true);
    const size = reports * reportBytes(mechanism, width), first = place + GROUP_BYTES;
    if (!size || windowStart > MAX_WINDOW_START || end - first < size) refuse("malformed");
    const fingerprint = view.getBigUint64(place, true), cohort = view.getUint16(place + 9, true);
    groups.push({ fingerprint, mechanism, cohort, windowStart, reports, width, rows: data.subarray(first, first + size) });
    place = first + size;
  }
  if (place !== end) refuse("malformed");
  return { id: data.slice(7, HEADER_BYTES), groups };
}
