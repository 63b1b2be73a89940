/** Whoever names files or folders gets these and nothing else; without names the whole suite runs. */
const { existsSync } = require('node:fs');
const { enableCompileCache } = require('node:module');
const path = require('node:path');

// What a run compiles the next one finds, and so does each program that a test starts.
process.env.NODE_COMPILE_CACHE ??= path.join(__dirname, 'node_modules/.cache/compiled');
enableCompileCache();

const isNamed = process.argv.slice(2).some((argument) => existsSync(argument) || argument.includes('*'));

module.exports = {
  extension: ['test.ts'],
  recursive: true,
  reporter: './test/support/reporter.ts',
  require: ['./test/support/hooks.ts'],
  // Against hanging only: no rule depends on it.
  timeout: 120_000,
  exit: false,
  // Each of the two processes runs many files, and keeps its servers from one to the next.
  ...(isNamed ? {} : { spec: ['test', 'modules/node/test'], parallel: true, jobs: 2 }),
};
