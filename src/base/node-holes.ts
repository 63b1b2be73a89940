/** The releases of Node with a known vulnerability, which the doctor and a metric report. */

/** All releases of a major version are vulnerable before the release that mends the vulnerability. */
const HOLES = [{ major: 24, mendedIn: '24.22.1', hole: 'CVE-2026-111497, a hole in the Brotli decoder' }];

/** Returns the known vulnerabilities of a release of Node. */
export const holesOfNode = (version = process.versions.node): typeof HOLES =>
  HOLES.filter(
    ({ major, mendedIn }) =>
      Number.parseInt(version, 10) === major && version.localeCompare(mendedIn, 'en', { numeric: true }) < 0,
  );
