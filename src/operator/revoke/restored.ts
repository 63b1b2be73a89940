/** Ends again what a restored backup has brought back. */
import type { Confirm } from '../program/confirmation.ts';
import type { Operator } from '../program/operator.ts';
import type { Report } from '../program/report.ts';
import type { Registries } from '../registries.ts';

/** After an older token store was restored: every single end that is recorded is carried out again. */
export async function revokeRecorded(
  registries: Registries,
  since: Date | undefined,
  { progress }: Pick<Operator, 'progress'>,
): Promise<Report> {
  const endings = await registries.endings();
  const total = await registries.revocations.countSince(since);
  const { looked, ended } = await endings.repeatRecorded(since, (count) =>
    progress.show('Recorded ends looked at', count, total),
  );
  return {
    value: { recorded: looked, ended },
    text: `Of ${looked} authorizations that are recorded as ended ${ended} were alive. They are ended.`,
  };
}

/**
 * After an older PostgreSQL was restored: it does not know which connections were ended since, so
 * every authorization is ended, and every machine access token. What people approved stays, and they are not asked again.
 */
export async function revokeAll(registries: Registries, confirm: Confirm): Promise<Report> {
  await confirm('Ends every authorization of everybody, and every machine access token.');
  const record = registries.recordChange('everything_revoked', {});
  const count = await registries.connections.endEveryAuthorization(async (tx) => {
    await registries.clients.endEveryMachineToken(tx);
    await record(tx);
  });
  return {
    value: { connections: count },
    text:
      `Ended the authorizations of all ${count} connections, and every machine access token. The ` +
      'clients must send their people through the authorization again; who approved before is not asked again.',
  };
}
