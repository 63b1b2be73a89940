/** The temporary account and clients with which the doctor tests an authorization. */
import { createActivity } from '../accounts/activity/activity.ts';
import { createDoctorAccounts } from '../accounts/doctor-accounts.ts';
import { passwordLinkPath } from '../accounts/password-links/link-mail.ts';
import { createPasswordLinks } from '../accounts/password-links/password-links.ts';
import { createRevocations } from '../authorizations/revocations.ts';
import { systemClock } from '../base/clock.ts';
import type { OperatedBy } from '../base/operated-by.ts';
import { createAccounts } from '../changes/accounts.ts';
import { createChanges } from '../changes/engine.ts';
import { createClientRegistry } from '../clients/client-registry.ts';
import { silentChangeFeed } from '../storage/change-feed.ts';
import type { Database } from '../storage/queries.ts';

export type Visitor = Awaited<ReturnType<ReturnType<typeof createVisitors>['add']>>;

/** A URI whose host never exists (RFC 2606 §2): the doctor reads the redirect and does not follow it. */
export const REDIRECT_URI = 'https://doctor.gatehouse.invalid/callback';

const credentials = ({ client: { id }, secret }: { client: { id: string }; secret?: string | undefined }) => ({
  id,
  authorization: `Basic ${Buffer.from(`${id}:${secret ?? ''}`).toString('base64')}`,
});

export function createVisitors(
  database: Database,
  { by, passwords }: { readonly by: OperatedBy; readonly passwords: boolean },
) {
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const accounts = createAccounts({ ...parts, engine: createChanges(parts) });
  const clients = createClientRegistry(parts);
  const activity = createActivity({ ...parts, by });
  const links = createPasswordLinks({ ...parts, accounts, activity });
  const doctorAccounts = createDoctorAccounts({ ...parts, accounts });
  const revocations = createRevocations({ ...parts, activity });

  const visitors = {
    async add() {
      const { account, password } = await doctorAccounts.add();
      const { id, email } = account;
      // Make the account own the clients: if this run is killed, a later run finds the account and deletes its clients.
      const both = { name: 'Gatehouse doctor', isNative: false, ownerAccountId: id };
      const client = await clients.add({ ...both, kind: 'confidential', redirectUris: [REDIRECT_URI] });
      const api = await clients.add({ ...both, kind: 'resource-server', redirectUris: [] });
      const linkPath = async () => passwordLinkPath((await links.make(account, 'invitation', 'operator')).token);
      const person = passwords ? { email, password } : { linkPath: await linkPath() };
      return { accountId: id, person, client: credentials(client), resourceServer: credentials(api) };
    },

    /** Returns the network address that the service recorded at the sign-in of the account. */
    async recordedAddress(accountId: string): Promise<string | undefined> {
      const records = await activity.of(accountId, { limit: 20 });
      return records.find(({ action }) => action === 'signed_in')?.origin?.address;
    },

    async remove(accountId: string, outcome: string): Promise<void> {
      for (const { id } of await clients.listByOwner(accountId)) await clients.remove(id);
      await doctorAccounts.remove(accountId, async (tx) => {
        await revocations.forgetAccount(accountId, tx);
        await activity.record({ action: 'doctor_ran', actor: 'operator', details: { outcome } }, tx);
      });
    },

    /** Removes the accounts of earlier doctor runs that were killed. @returns how many there were */
    async removeLeftOver(): Promise<number> {
      const leftOver = await doctorAccounts.leftOver();
      for (const { id } of leftOver) await visitors.remove(id, 'an earlier run that was interrupted');
      return leftOver.length;
    },
  };
  return visitors;
}
