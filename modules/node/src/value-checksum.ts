/** Recognizes made-up tokens and API keys by their checksum, without asking the service. */

/** The form of the service's tokens and API keys. Values of any other form are sent to the service. */
const FORM = /^gate_(?:at_[A-Za-z0-9_-]{95}|(?:mt|key)_[A-Za-z0-9_-]{49})$/;

export function isMadeUp(value: string): boolean {
  return FORM.test(value) && checksum(value.slice(0, -6)) !== value.slice(-6);
}

/** Returns the CRC-32 in base64url, padded to 36 bits. Some versions of Node 20 have no `crc32`. */
function checksum(text: string): string {
  let crc = -1;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  const bytes = Buffer.alloc(6);
  bytes.writeInt32BE(~crc, 2);
  return bytes.toString('base64url').slice(-6);
}
