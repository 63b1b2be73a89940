/** The URL of the operators' listener, and the credentials of a request to it. */
import { createHmac } from 'node:crypto';
import { isLoopbackOrigin } from './issuer.ts';
import type { Settings } from './settings.ts';

const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const requestOrigin = (host: string): string => `http://${host.includes(':') ? `[${host}]` : host}`;

/** Returns the URL for callers on this machine; loopback if the listener is on every interface. */
export function operatorsUrl(
  { operatorsHost, operatorsPort }: Pick<Settings['server'], 'operatorsHost' | 'operatorsPort'>,
  path: string,
): string {
  return `${requestOrigin(LOOPBACK_OF[operatorsHost] ?? operatorsHost)}:${operatorsPort}${path}`;
}

/** True if other machines reach the listener: callers must then prove that they have the keys. */
export const isReachedFromElsewhere = (operatorsHost: string): boolean =>
  !isLoopbackOrigin(requestOrigin(operatorsHost));

/** Returns one credential per key: during a key rotation, node and caller share at least one. */
export const reloadCredentials = ({ cookieKeys }: Settings['secrets']): string[] =>
  cookieKeys.map((key) => createHmac('sha256', key).update('reload').digest('base64url'));

/** Returns the credentials of which a request must have one; undefined if only this machine can reach the listener. */
export const neededCredentials = (operatorsHost: string, secrets: Settings['secrets']): string[] | undefined =>
  isReachedFromElsewhere(operatorsHost) ? reloadCredentials(secrets) : undefined;
