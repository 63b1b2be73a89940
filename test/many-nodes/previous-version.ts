/**
 * The previous release. Its sources are an archive in the repository instead of being read from
 * git, because a shallow clone and a copy without history must test the upgrade as well.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { createIntrospector } from '../../modules/node/src/introspector.ts';
import type { runOperator } from '../../src/operator/program/run-operator.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Update these values at each release (see CONTRIBUTING.md). */
export const PREVIOUS_VERSION = {
  version: '0.1.0',
  commit: 'c4c279924a3d5c824c37d71fdebdbbc8cf8a8c9c',
} as const;

/** The files that a node and the operator command need. */
export const KEPT_PATHS = ['src', 'views', 'config', 'package.json'] as const;

const ARCHIVE = path.join(import.meta.dirname, 'previous-version.tar.gz');
const NODE_MODULES = path.join(import.meta.dirname, '../../node_modules');

/** Returns the uncompressed output of `git archive`. */
export const previousSources = (): Buffer => gunzipSync(readFileSync(ARCHIVE));

export interface PreviousVersion {
  /** Path of the program of a node. */
  readonly main: string;
  /** The operator command of that version, which runs in this process. */
  readonly runOperator: typeof runOperator;
  /** `createIntrospector` from that version's module for APIs. */
  readonly createIntrospector: typeof createIntrospector;
}

/**
 * Unpacks the sources into a folder of this test run. They use the packages of this checkout: an upgrade
 * concerns what is stored and sent, and `npm ci` in a second folder would take a minute and a registry.
 */
export async function unpackPreviousVersion(): Promise<PreviousVersion> {
  const folder = temporaryDirectory('previous');
  execFileSync('tar', ['-xf', '-', '-C', folder], { input: previousSources() });
  symlinkSync(NODE_MODULES, path.join(folder, 'node_modules'));
  const load = <Module>(file: string) => import(path.join(folder, file)) as Promise<Module>;
  const { runOperator } = await load<Pick<PreviousVersion, 'runOperator'>>('src/operator/program/run-operator.ts');
  const { createIntrospector } = await load<Pick<PreviousVersion, 'createIntrospector'>>(
    'src/resource-server/introspector.ts',
  );
  return { main: path.join(folder, 'src/main.ts'), runOperator, createIntrospector };
}
