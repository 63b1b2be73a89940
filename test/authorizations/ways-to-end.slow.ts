/** Every way to end access, with the tokens in the embedded database and in Redis. */
import { forEachDeploymentAndEmbedded } from '../support/service.ts';
import { endOfAccess } from './ways-to-end.ts';

forEachDeploymentAndEmbedded('every end of access', (start) => endOfAccess(start, 'all'));
