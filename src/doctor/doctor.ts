/** Tests the whole service at its public address, and everything on which it depends. */
import { unknownOrganizations } from '../changes/test-organizations.ts';
import { ADDRESS_CHECKS, HOPS_CHECK } from './address.ts';
import { check, runChecks } from './check.ts';
import { warning } from './findings.ts';
import { FLOW_CHECK, STREAM_CHECK } from './flow.ts';
import { createNeeds, type ExaminationOptions } from './needs.ts';
import { NODE_CHECKS } from './nodes.ts';
import { SERVER_CHECKS } from './servers.ts';
import { STORE_CHECKS } from './stores.ts';

/** The checks in the order of the report. Checks after `FLOW_CHECK` need records that this check creates. */
const CHECKS = [
  check('everything_else', ['settings'], '', () => []),
  ...STORE_CHECKS,
  ...NODE_CHECKS,
  ...SERVER_CHECKS,
  check('test_organizations', ['database', 'settings'], 'api.test_organizations', async ({ database, settings }) => {
    const unknown = await unknownOrganizations(database, settings.api?.testOrganizations ?? []);
    return unknown.map(({ id }) => warning`there is no organization ${id} → remove the id, or correct it`);
  }),
  ...ADDRESS_CHECKS,
  FLOW_CHECK,
  HOPS_CHECK,
  STREAM_CHECK,
];

export const examine = (options: ExaminationOptions, say: (text: string, count: number) => void) =>
  runChecks(CHECKS, createNeeds, options, say);
