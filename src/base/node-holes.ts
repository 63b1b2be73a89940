/** Known vulnerabilities of Node, which the doctor and a metric report. */

/** All releases of a major version before `mendedIn` are vulnerable. */
const HOLES = [{ major: 24, mendedIn: '24.22.1', hole: 'CVE-2026-111497, a hole in the Brotli decoder' }];

export const holesOfNode = (version = process.versions.node): typeof HOLES =>
  HOLES.filter(
    ({ major, mendedIn }) =>
      Number.parseInt(version, 10) === major && version.localeCompare(mendedIn, 'en', { numeric: true }) < 0,
  );
