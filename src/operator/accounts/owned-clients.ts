/** Reports what the suspension or deletion of an account means for the clients that it owns. */
import type { Account } from '../../accounts/account.ts';
import { Refusal } from '../../base/refusal.ts';
import { type OwnedClient, peopleText } from '../../clients/client-row.ts';
import type { Report } from '../command/operator.ts';
import type { Registries } from '../registries.ts';

const REMEDY = 'To hand a client over: clients transfer CLIENT --owner ACCOUNT.';

/** Returns the effect of a suspension on the clients of the account; undefined if it owns none. */
export async function ownedClientsReport(
  { id }: Account,
  { clients }: Registries,
): Promise<(Report & { readonly value: object }) | undefined> {
  const owned = await clients.listByOwner(id);
  if (owned.length === 0) return undefined;
  return {
    value: {
      owned_clients: owned.map(({ id: clientId, name, connectedPeople }) => {
        return { client_id: clientId, name, connected_people: connectedPeople };
      }),
    },
    text: [
      'The account owns clients. They keep working for the people who connected them, but no one',
      'can approve or manage them any more:',
      ...owned.map(lineOf),
      REMEDY,
      'To stop a client: clients suspend CLIENT.',
    ].join('\n'),
  };
}

/** @throws Refusal `account_owns_clients` */
export async function refuseOwner({ id }: Account, { clients }: Registries): Promise<void> {
  const owned = await clients.listByOwner(id);
  if (owned.length === 0) return;
  const remedy = [...owned.map(lineOf), REMEDY, 'To delete a client: clients delete CLIENT.'].join('\n');
  throw new Refusal('account_owns_clients', `The account ${id} owns clients.`, remedy);
}

const lineOf = ({ id, name, connectedPeople }: OwnedClient): string =>
  `  ${id}  ${name}, ${peopleText(connectedPeople)} ${connectedPeople === 1 ? 'person' : 'people'} connected`;
