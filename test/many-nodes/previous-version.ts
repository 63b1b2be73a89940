/**
 * The version from which the upgrade tests start, and to which they return: the newest released one, which may be that
 * of this checkout.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import type { createIntrospector } from '../../modules/node/src/introspector.ts';
import type { runOperator } from '../../src/operator/program/run-operator.ts';
import { previousRelease } from '../support/previous-release.ts';

// Mocha loads files of tests with `require`, so they cannot await an import.
const require = createRequire(import.meta.url);
const root = previousRelease?.root ?? path.join(import.meta.dirname, '../..');

export const PREVIOUS_VERSION = {
  /** Part of the titles of the tests. */
  name: previousRelease === undefined ? 'this version' : `version ${previousRelease.version}`,
  /** Path of the program of a node. */
  main: path.join(root, 'src/main.ts'),
  /** The operator command of that version, which runs in this process. */
  runOperator: require(path.join(root, 'src/operator/program/run-operator.ts')).runOperator as typeof runOperator,
  /** `createIntrospector` from that version's module for APIs. */
  createIntrospector: require(path.join(root, 'modules/node/src/introspector.ts'))
    .createIntrospector as typeof createIntrospector,
} as const;

/** False while the previous version is this checkout: a way from the new to the old version is then the way there again. */
export const HAS_WAY_BACK: boolean = previousRelease !== undefined;
