/** Upgrades the embedded deployment from the previous version and back: nothing unfinished is lost. */
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { mixedDeployment, testUpgradeAndRollback } from './mixed-deployment.ts';
import { PREVIOUS_VERSION } from './previous-version.ts';

describe(`an upgrade from ${PREVIOUS_VERSION.name}, embedded`, () => {
  // Configure no keys: the first node creates them in the data directory.
  testUpgradeAndRollback(mixedDeployment(async () => ({ GATEHOUSE_DATA_DIR: temporaryDirectory('data') })));
});
