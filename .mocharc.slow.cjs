/**
 * The slow run: four files at a time, since most of a slow test is waiting, and the longest first. Whoever names files
 * gets only these: Mocha adds the files of a configuration to the named ones.
 */
const { globSync } = require('node:fs');

const LONGEST = [
  'test/journeys/rolling-restarts.slow.ts',
  'test/deploy/container.slow.ts',
  'test/journeys/accessibility.slow.ts',
  'test/libraries/libraries.slow.ts',
  'test/storage/year-five.slow.ts',
  'test/many-nodes/crashes.slow.ts',
  'test/deploy/upgrade.slow.ts',
  'test/docs.slow.ts',
  'test/authorizations/failovers.slow.ts',
  'test/journeys/client-snippets.slow.ts',
  'test/authorizations/ends.slow.ts',
  'test/storage/redis-deployments.slow.ts',
  'test/many-nodes/upgrade.slow.ts',
  'test/import/scale.slow.ts',
  'test/provider/races.slow.ts',
  'test/authorizations/ways-to-end.slow.ts',
  'test/many-nodes/upgrade-embedded.slow.ts',
  'test/pages/organization-at-size.slow.ts',
  'test/import/walked-writers.slow.ts',
  'test/modules/python.slow.ts',
  'test/journeys/restore.slow.ts',
  'test/sandbox/story.slow.ts',
  'test/storage/embedded-postgres.slow.ts',
  'test/pages/passkeys/browser.slow.ts',
  'test/storage/damaged-data.slow.ts',
  'test/authorizations/random-walk.slow.ts',
  'modules/node/test/packed.slow.ts',
];
const files = globSync('{test,modules/node/test}/**/*.slow.ts').sort();
const isNamed = process.argv.slice(2).some((argument) => argument.endsWith('.slow.ts'));

module.exports = {
  ...require('./.mocharc.cjs'),
  timeout: 600_000,
  ...(isNamed
    ? {}
    : {
        spec: [...new Set([...LONGEST.filter((file) => files.includes(file)), ...files])],
        parallel: true,
        jobs: 4,
      }),
};
