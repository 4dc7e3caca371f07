/** CRC-32C (Castagnoli), the checksum of uploads, bit by bit: an upload is short. @param {Uint8Array} data */
export const crc32c = (data) => {
  let crc = -1;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 && 0x82f63b78);
  }
  return ~crc;
};
