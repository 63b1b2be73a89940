/** The operators' listener for its clients: its URL, and the credentials of a request to it. */
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

/** True if other machines can reach it: requests must then prove that the caller has the keys. */
export const isReachedFromElsewhere = (operatorsHost: string): boolean =>
  !isLoopbackOrigin(requestOrigin(operatorsHost));

/** One credential per key: while keys are rotated, a node and its caller share at least one. */
export const reloadCredentials = ({ cookieKeys }: Settings['secrets']): string[] =>
  cookieKeys.map((key) => createHmac('sha256', key).update('reload').digest('base64url'));

/** Requests must present one of these; undefined if only the node's own machine can reach it. */
export const neededCredentials = (
  operatorsHost: string,
  secrets: Settings['secrets'],
): string[] | undefined =>
  isReachedFromElsewhere(operatorsHost) ? reloadCredentials(secrets) : undefined;
