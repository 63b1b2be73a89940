/** A software authenticator and the browser it belongs to: creates passkeys and signs challenges. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** What a false answer of the authenticator contains instead of the correct values. */
export interface Lie {
  readonly origin?: string;
  readonly rpId?: string;
  readonly type?: string;
  readonly challenge?: string;
  readonly crossOrigin?: boolean;
  /** Flags of the authenticator data: 1 present, 4 verified, 8 may be synced, 16 is synced. */
  readonly flags?: number;
  readonly counter?: number;
  readonly userHandle?: string;
  /** True if the signature covers data that differs from the answer. */
  readonly isTampered?: boolean;
  /** The attestation statement. Default: format `none`. */
  readonly attestation?: readonly [format: string, statement: Buffer];
}

export interface SoftPasskey {
  readonly id: string;
  readonly handle: string;
  /** The counter of the latest signature; the next one is one higher. */
  counter: number;
  /** Returns what a page sends after it called the browser with these options. */
  answer(options: { readonly challenge: string }, lie?: Lie): string;
}

const PRESENT_VERIFIED_SYNCED = 0x01 | 0x04 | 0x08 | 0x10;
const HAS_KEY = 0x40;

/** Makes a passkey. @param origin the origin whose host is the RP ID. @returns the passkey, and what the page sends */
export function makePasskey(
  origin: string,
  options: { readonly challenge: string; readonly user: { readonly id: string } },
  lie: Lie = {},
): { readonly passkey: SoftPasskey; readonly made: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const credentialId = randomBytes(32);
  const id = credentialId.toString('base64url');
  const handle = options.user.id;
  const [format, statement] = lie.attestation ?? ['none', Buffer.from([0xa0])];
  const key = Buffer.concat([
    Buffer.alloc(16),
    Buffer.from([0, credentialId.length]),
    credentialId,
    coseKey(publicKey),
  ]);
  const data = authenticatorData(origin, { counter: 0, ...lie }, key);
  const attestationObject = map([
    [text('fmt'), text(format)],
    [text('attStmt'), statement],
    [text('authData'), bytes(data)],
  ]);
  const passkey: SoftPasskey = {
    id,
    handle,
    counter: 0,
    answer: (asked, lie = {}) => answerOf(passkey, privateKey, origin, { ...lie, asked }),
  };
  const response = {
    clientDataJSON: clientData(origin, 'webauthn.create', options.challenge, lie),
    attestationObject: attestationObject.toString('base64url'),
    transports: ['internal', 'hybrid'],
  };
  return { passkey, made: credential(id, response) };
}

function answerOf(
  passkey: SoftPasskey,
  privateKey: KeyObject,
  origin: string,
  { asked, ...lie }: Lie & { readonly asked: { readonly challenge: string } },
): string {
  const { id, handle, counter } = passkey;
  const data = authenticatorData(origin, { counter, ...lie });
  const clientDataJSON = clientData(origin, 'webauthn.get', asked.challenge, lie);
  const hash = sha256(Buffer.from(clientDataJSON, 'base64url'));
  const signed = Buffer.concat([data, lie.isTampered ? sha256(hash) : hash]);
  return credential(id, {
    clientDataJSON,
    authenticatorData: data.toString('base64url'),
    signature: sign('sha256', signed, privateKey).toString('base64url'),
    userHandle: lie.userHandle ?? handle,
  });
}

const credential = (id: string, response: object): string =>
  JSON.stringify({ id, rawId: id, type: 'public-key', clientExtensionResults: {}, response });

function clientData(origin: string, type: string, challenge: string, lie: Lie): string {
  const sent = { type, challenge, origin, crossOrigin: false, ...lie };
  const { type: kind, challenge: asked, origin: from, crossOrigin } = sent;
  const json = JSON.stringify({ type: kind, challenge: asked, origin: from, crossOrigin });
  return Buffer.from(json).toString('base64url');
}

/** Encodes authenticator data (Web Authentication §6.1). */
function authenticatorData(origin: string, lie: Lie, key?: Buffer): Buffer {
  const flags = (lie.flags ?? PRESENT_VERIFIED_SYNCED) | (key ? HAS_KEY : 0);
  const counter = Buffer.alloc(4);
  counter.writeUInt32BE(lie.counter ?? 0);
  const rpIdHash = sha256(Buffer.from(lie.rpId ?? new URL(origin).hostname));
  return Buffer.concat([rpIdHash, Buffer.from([flags]), counter, key ?? Buffer.alloc(0)]);
}

/** Encodes a public key as COSE, for ES256 (RFC 9053 §7.1.1). */
function coseKey(publicKey: KeyObject): Buffer {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  return map([
    [Buffer.from([0x01]), Buffer.from([0x02])],
    [Buffer.from([0x03]), Buffer.from([0x26])],
    [Buffer.from([0x20]), Buffer.from([0x01])],
    [Buffer.from([0x21]), bytes(Buffer.from(x, 'base64url'))],
    [Buffer.from([0x22]), bytes(Buffer.from(y, 'base64url'))],
  ]);
}

/** Encodes a map in CBOR (RFC 8949 §3), with up to 23 pairs, text and bytes below 64 kB. */
const map = (pairs: readonly (readonly [Buffer, Buffer])[]): Buffer =>
  Buffer.concat([Buffer.from([0xa0 + pairs.length]), ...pairs.flat()]);
const text = (value: string): Buffer => sized(0x60, Buffer.from(value));
const bytes = (data: Buffer): Buffer => sized(0x40, data);
function sized(type: number, data: Buffer): Buffer {
  const { length } = data;
  const long = length < 256 ? [type + 24, length] : [type + 25, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(length < 24 ? [type + length] : long), data]);
}

const sha256 = (data: Buffer): Buffer => createHash('sha256').update(data).digest();
