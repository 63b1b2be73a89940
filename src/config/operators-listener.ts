/** The URL of the operators' listener, and the credentials of a request to it. */
import { createHmac } from 'node:crypto';
import { isLoopbackOrigin } from './issuer.ts';
import type { Settings } from './settings.ts';

const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const requestOrigin = (host: string): string => `http://${host.includes(':') ? `[${host}]` : host}`;

/** Returns the URL for callers on this machine. It is on loopback if the listener is on every interface. */
export function operatorsUrl(
  { operatorsHost, operatorsPort }: Pick<Settings['server'], 'operatorsHost' | 'operatorsPort'>,
  path: string,
): string {
  return `${requestOrigin(LOOPBACK_OF[operatorsHost] ?? operatorsHost)}:${operatorsPort}${path}`;
}

/** True if other machines can connect to the listener. Callers must then prove that they have the keys. */
export const isReachedFromElsewhere = (operatorsHost: string): boolean =>
  !isLoopbackOrigin(requestOrigin(operatorsHost));

/** Returns one credential for each key, so the node and the caller share at least one even during a key rotation. */
export const reloadCredentials = ({ cookieKeys }: Settings['secrets']): string[] =>
  cookieKeys.map((key) => createHmac('sha256', key).update('reload').digest('base64url'));

/** Returns credentials, one of which each request needs; undefined if only this machine can connect to the listener. */
export const neededCredentials = (operatorsHost: string, secrets: Settings['secrets']): string[] | undefined =>
  isReachedFromElsewhere(operatorsHost) ? reloadCredentials(secrets) : undefined;
