/** Every way to end access, with the tokens in the embedded database. */
import { startsOn } from '../support/service.ts';
import { endOfAccess } from './ways-to-end.ts';

describe('the end of access, embedded', () => endOfAccess(startsOn('embedded')));
