/**
 * The version from which the upgrade tests start, and to which they return. This is the only place
 * that chooses it: before 1.0.0 is released there is no earlier version, so it is this checkout.
 */
import { createIntrospector } from '../../modules/node/src/introspector.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import { MAIN } from './running-node.ts';

/** Once a released version is chosen, these come from its sources, unpacked next to `node_modules`. */
export const PREVIOUS_VERSION = {
  /** Part of the titles of the tests. */
  name: 'this version',
  /** Path of the program of a node. */
  main: MAIN,
  /** The operator command of that version, which runs in this process. */
  runOperator,
  /** `createIntrospector` from that version's module for APIs. */
  createIntrospector,
} as const;

/** False while the previous version is this checkout: a way from the new to the old version is then the way there again. */
export const HAS_WAY_BACK: boolean = PREVIOUS_VERSION.main !== MAIN;
