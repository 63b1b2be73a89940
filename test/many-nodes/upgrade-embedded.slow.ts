/** Upgrades the embedded deployment from the previous version and back: nothing unfinished is lost. */
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { mixedDeployment, PREVIOUS, testUpgradeAndRollback } from './mixed-deployment.ts';

describe(`an upgrade from ${PREVIOUS}, embedded`, () => {
  // Configure no keys: the first node creates them in the data directory.
  testUpgradeAndRollback(mixedDeployment(async () => ({ GATEHOUSE_DATA_DIR: temporaryDirectory('data') })));
});
