/** What proves that an order to reload comes from who holds the keys of the node. */
import { createHmac } from 'node:crypto';
import { isLoopbackOrigin } from './issuer.ts';
import type { Settings } from './settings.ts';

/** Whether other machines may reach the operators' listener: then an order must prove itself. */
export const isReachedFromElsewhere = (operatorsHost: string): boolean =>
  !isLoopbackOrigin(`http://${operatorsHost.includes(':') ? `[${operatorsHost}]` : operatorsHost}`);

/** One for each key: while keys are rotated, a node and whoever orders it share at least one. */
export const reloadCredentials = ({ cookieKeys }: Settings['secrets']): string[] =>
  cookieKeys.map((key) => createHmac('sha256', key).update('reload').digest('base64url'));

/** Of which a node asks for one; undefined where only its own machine reaches it. */
export const neededCredentials = (
  operatorsHost: string,
  secrets: Settings['secrets'],
): string[] | undefined =>
  isReachedFromElsewhere(operatorsHost) ? reloadCredentials(secrets) : undefined;
