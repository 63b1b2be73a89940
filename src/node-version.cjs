/**
 * Loaded first (`node --require`), and written for every Node there is. Says in one sentence that this
 * Node is too old, or that the dependencies are not installed, where a stack trace would follow.
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
  process.stderr.write(
    `The packages that Gatehouse needs are not installed: run \`npm ci\` in ${root}\n`,
  );
  process.exit(1);
}
