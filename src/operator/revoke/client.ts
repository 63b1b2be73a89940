/** Ends everything that was issued to a client, which stays as it is and may get new tokens. */
import type { Client } from '../../clients/client.ts';
import { Refusal } from '../../refusal.ts';
import { clientRecord } from '../change-records.ts';
import type { Confirm } from '../program/confirmation.ts';
import { clientNamed } from '../program/names.ts';
import type { Report } from '../program/report.ts';
import type { Registries } from '../registries.ts';

export async function revokeClient(
  registries: Registries,
  clientId: string,
  confirm: Confirm,
): Promise<Report> {
  const client = await clientNamed(registries, clientId);
  if (client.kind === 'resource-server') throw withoutTokens(client);
  if (client.kind === 'machine') return revokeMachine(registries, client, confirm);
  const people = await registries.connections.countOf(clientId);
  const { name } = client;
  await confirm(`Ends the connections of ${people} people to ${name}.`);
  const { length: ended } = await registries.disconnect({ clientId }, undefined, (tx, ended) =>
    clientRecord(registries, 'client_tokens_revoked', client, { people: ended.length })(tx),
  );
  return {
    value: { client_id: clientId, connections: ended },
    text:
      `Ended the connections of ${ended} people to ${name}, with all their authorizations. ` +
      'Each is asked before the client gets another one.',
  };
}

/** No list of its tokens is kept: they carry the generation they were issued in. */
async function revokeMachine(
  registries: Registries,
  client: Client,
  confirm: Confirm,
): Promise<Report> {
  await confirm(`Ends every access token of the machine client ${client.name}.`);
  await registries.clients.endMachineTokens(
    client.id,
    clientRecord(registries, 'client_tokens_revoked', client, {}),
  );
  return {
    value: { client_id: client.id, machine_tokens_ended: true },
    text:
      `Ended every access token of ${client.name}. With its secret it gets another one: ` +
      '`clients suspend` keeps it out.',
  };
}

const withoutTokens = ({ name }: Client): Refusal =>
  new Refusal(
    'client_without_tokens',
    `${name} is a resource server: nothing is issued to it.`,
    '`clients suspend` refuses its questions; `clients rotate-secret` gives it another secret.',
  );
