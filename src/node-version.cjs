/**
 * Loaded first (`node --require`), and written for every Node there is. If this Node is too old or
 * the dependencies are not installed, prints one sentence instead of a stack trace.
 */
const { existsSync } = require('node:fs');
const path = require('node:path');
const { engines } = require('../package.json');

const [needed] = /\d+/.exec(engines.node);
if (Number.parseInt(process.versions.node, 10) < needed) {
  process.stderr.write(
    `Gatehouse needs Node ${needed} or later, but this is ${process.versions.node} (${process.execPath}): ` +
      'install it, or run `npm ci` without --omit=dev, which installs one.\n',
  );
  process.exit(1);
}

const root = path.join(__dirname, '..');
if (!existsSync(path.join(root, 'node_modules'))) {
  process.stderr.write(`The packages that Gatehouse needs are not installed: run \`npm ci\` in ${root}\n`);
  process.exit(1);
}
