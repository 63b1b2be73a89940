/** The operators' listener, as programs reach it: where it is, and what an order to it must prove. */
import { createHmac } from 'node:crypto';
import { isLoopbackOrigin } from './issuer.ts';
import type { Settings } from './settings.ts';

const EVERYWHERE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const originOf = (host: string): string => `http://${host.includes(':') ? `[${host}]` : host}`;

/** From this machine: where it listens on every interface, on this one's own. */
export function operatorsUrl(
  { operatorsHost, operatorsPort }: Pick<Settings['server'], 'operatorsHost' | 'operatorsPort'>,
  path: string,
): string {
  return `${originOf(EVERYWHERE[operatorsHost] ?? operatorsHost)}:${operatorsPort}${path}`;
}

/** Whether other machines may reach it: then an order must prove that it comes from who holds the keys. */
export const isReachedFromElsewhere = (operatorsHost: string): boolean =>
  !isLoopbackOrigin(originOf(operatorsHost));

/** One for each key: while keys are rotated, a node and whoever orders it share at least one. */
export const reloadCredentials = ({ cookieKeys }: Settings['secrets']): string[] =>
  cookieKeys.map((key) => createHmac('sha256', key).update('reload').digest('base64url'));

/** Of which a node asks for one; undefined where only its own machine reaches it. */
export const neededCredentials = (
  operatorsHost: string,
  secrets: Settings['secrets'],
): string[] | undefined =>
  isReachedFromElsewhere(operatorsHost) ? reloadCredentials(secrets) : undefined;
