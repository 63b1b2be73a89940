/** Whoever names files or folders gets these and nothing else; without names the whole suite runs. */
const { existsSync, globSync } = require('node:fs');
const { enableCompileCache } = require('node:module');
const path = require('node:path');

// What a run compiles the next one finds, and so does each program that a test starts.
process.env.NODE_COMPILE_CACHE ??= path.join(__dirname, 'node_modules/.cache/compiled');
enableCompileCache();

// The longest files first, so that none of them runs alone at the end.
const LONGEST = [
  'test/main.test.ts',
  'test/sign-in/table.test.ts',
  'test/doctor/address.test.ts',
  'test/import/late-lines.test.ts',
  'test/pages/security.test.ts',
  'test/many-nodes/shared-reload.test.ts',
  'test/storage/embedded-postgres.test.ts',
  'test/accounts/mail.test.ts',
  'test/operator/revoke.test.ts',
  'test/operator/show.test.ts',
  'test/operator/program.test.ts',
  'test/authorizations/ways-to-end.test.ts',
  'test/authorizations/random-walk.test.ts',
  'test/failed-start.test.ts',
  'test/pages/limits.test.ts',
  'test/journeys/browser.test.ts',
  'test/journeys/pages.test.ts',
  'test/storage/faults.test.ts',
  'test/host/raw-connections.test.ts',
  'test/pages/approved-clients.test.ts',
];
const FILES = globSync('{test,modules/node/test}/**/*.test.ts').sort();

// Slow tests, by this configuration or the slow one: see test/support/cheap-passwords.ts.
if (process.argv.some((argument) => argument.includes('.slow'))) process.env.TEST_PASSWORDS = 'as in production';
const isNamed = process.argv.slice(2).some((argument) => existsSync(argument) || argument.includes('*'));

module.exports = {
  extension: ['test.ts'],
  recursive: true,
  reporter: './test/support/reporter.ts',
  require: ['./test/support/cheap-passwords.ts', './test/support/hooks.ts'],
  // Against hanging only: no rule depends on it.
  timeout: 120_000,
  exit: false,
  // Four at a time, also on two cores, since half of a test is waiting. Each process keeps its servers from file to file.
  ...(isNamed
    ? {}
    : {
        spec: [...new Set([...LONGEST.filter((file) => FILES.includes(file)), ...FILES])],
        parallel: true,
        jobs: 4,
      }),
};
