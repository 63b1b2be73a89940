/** The embedded deployment, from the version before to this one and back: nothing that was under way is lost. */
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { mixedDeployment, PREVIOUS, upgradesAndStepsBack } from './mixed-deployment.ts';

describe(`an upgrade from ${PREVIOUS}, embedded`, () => {
  // The data folder is all there is: the first node makes its secrets in it.
  upgradesAndStepsBack(
    mixedDeployment(async () => ({ GATEHOUSE_DATA_DIR: temporaryDirectory('data') })),
  );
});
