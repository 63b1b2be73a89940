/** Creates, parses and verifies codes and tokens. */
import { timingSafeEqual } from 'node:crypto';
import { FORMS, formTest, hmacSha256, randomId, withChecksum, withoutChecksum } from '../base/random-id.ts';
import type { Client } from '../clients/client.ts';
import type { AuthorizationRecord } from '../storage/token-store.ts';

/**
 * Codes and tokens are computed, not stored. They consist of the id of the authorization (22 characters, not secret),
 * the MAC (43) and the claims. So the store needs one record for any number of tokens, and if one token is refreshed
 * repeatedly, each refresh computes the same successor. The MAC needs a key of the service and the secret of the
 * record, so an attacker who reads only the settings or only the store cannot forge a token. A checksum ends the value,
 * so that a mistyped or made-up value is refused without reading the store.
 */
const VALUE = /^gate_(at|rt|ac)_([A-Za-z0-9_-]{22})([A-Za-z0-9_-]{43})([A-Za-z0-9_-]*)$/;

/** The claims of an access token: issued at, expires at, rotation (4 bytes each), client generation (3), random (3). */
const ACCESS_CLAIMS_BYTES = 18;
/** Base64url of 18 bytes has no unused bits, so no other text decodes to the same bytes. */
const ACCESS_CLAIMS_LENGTH = 24;

interface Value {
  readonly authorizationId: string;
  readonly mac: string;
  /** The last part of the value, still encoded. */
  readonly claims: string;
}

export interface PresentedRefreshToken extends Value {
  readonly kind: 'refresh_token';
  /** 0 for the first refresh token of an authorization; each refresh adds 1. */
  readonly rotation: number;
}

export interface PresentedAccessToken extends Value {
  readonly kind: 'access_token';
  /** Epoch seconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The rotation of the refresh token that was issued with this access token. */
  readonly rotation: number;
  /** The generation that the client had when it was authenticated. */
  readonly clientGeneration: number;
}

/** A parsed code or token, which may be forged until `isGenuine` has checked it. */
export type PresentedValue = (Value & { readonly kind: 'code' }) | PresentedRefreshToken | PresentedAccessToken;

export const isMachineToken = formTest('machine_token');

/** Parses a value without any lookup. Returns undefined if this service cannot have created it. */
export function readValue(value: string): PresentedValue | undefined {
  const [, kind, authorizationId = '', mac = '', claims = ''] = VALUE.exec(withoutChecksum(value)) ?? [];
  const named = { authorizationId, mac, claims };
  if (kind === 'ac') return claims === '' ? { kind: 'code', ...named } : undefined;
  if (kind === 'rt') {
    const rotation = Number.parseInt(claims, 36);
    // Accept only the form in which this service writes the number: `01` is not the same token as `1`.
    return rotation >= 0 && rotation.toString(36) === claims && claims.length <= 8
      ? { kind: 'refresh_token', ...named, rotation }
      : undefined;
  }
  if (kind !== 'at' || claims.length !== ACCESS_CLAIMS_LENGTH) return undefined;
  const bytes = Buffer.from(claims, 'base64url');
  return {
    kind: 'access_token',
    ...named,
    issuedAt: bytes.readUInt32BE(0),
    expiresAt: bytes.readUInt32BE(4),
    rotation: bytes.readUInt32BE(8),
    clientGeneration: bytes.readUIntBE(12, 3),
  };
}

/** The values from which the code and tokens of an authorization are computed. */
export interface ValueSource {
  readonly id: string;
  readonly secret: string;
}

/** @param keys the first key signs new values; all keys verify, so that a key can be replaced */
export function createTokenFormats(keys: readonly [string, ...string[]]) {
  const sign = hmacSha256(keys[0]);
  const macs = [sign, ...keys.slice(1).map(hmacSha256)];
  const signed = (kind: string, id: string, secret: string, claims: string) => `${kind}:${id}:${secret}:${claims}`;

  function make(kind: PresentedValue['kind'], { id, secret }: ValueSource, claims: string): string {
    return withChecksum(FORMS[kind].prefix + id + sign(signed(kind, id, secret, claims)) + claims);
  }

  return {
    code: (source: ValueSource): string => make('code', source, ''),
    refreshToken: (source: ValueSource, rotation: number): string =>
      make('refresh_token', source, rotation.toString(36)),

    /** Random bits make tokens of the same second differ; equal tokens do no harm. @param times epoch seconds */
    accessToken(
      source: ValueSource,
      rotation: number,
      {
        issuedAt,
        expiresAt,
        clientGeneration,
      }: Pick<PresentedAccessToken, 'issuedAt' | 'expiresAt' | 'clientGeneration'>,
    ): string {
      const claims = Buffer.allocUnsafe(ACCESS_CLAIMS_BYTES);
      claims.writeUInt32BE(issuedAt, 0);
      claims.writeUInt32BE(expiresAt, 4);
      claims.writeUInt32BE(rotation, 8);
      claims.writeUIntBE(clientGeneration, 12, 3);
      claims.write(randomId('', 4), 15, 'base64url');
      return make('access_token', source, claims.toString('base64url'));
    },

    isGenuine({ kind, authorizationId, claims, mac }: PresentedValue, secret: string): boolean {
      const presented = Buffer.from(mac);
      const text = signed(kind, authorizationId, secret, claims);
      return macs.some((macOf) => timingSafeEqual(Buffer.from(macOf(text)), presented));
    },
  };
}

export function isFromBeforeRenewal(
  {
    value,
    authorization,
  }: {
    readonly value: PresentedValue;
    readonly authorization: Pick<AuthorizationRecord, 'clientGeneration' | 'sinceRotation'>;
  },
  { generation }: Pick<Client, 'generation'>,
): boolean {
  if (value.kind === 'access_token') return value.clientGeneration < generation;
  const { clientGeneration, sinceRotation } = authorization;
  return clientGeneration < generation || (value.kind === 'refresh_token' && value.rotation < sinceRotation);
}
