/**
 * Loaded first (`node --require`), and written for every Node there is: one that is too old for this
 * program is told so, instead of stumbling over its first file.
 */
const { engines } = require('../package.json');

const [needed] = /\d+/.exec(engines.node);
if (Number.parseInt(process.versions.node, 10) < needed) {
  process.stderr.write(
    `Gatehouse needs Node ${needed} or later, and this is ${process.versions.node} (${process.execPath}): ` +
      'install one, or run `npm ci` without --omit=dev, which brings one.\n',
  );
  process.exit(1);
}
