/** A deployment as its operator sets it up: by the commands of the version that runs it. */
import { type RunOperator, valueFrom } from '../../operator/run-operator.ts';
import { partnerTokens } from '../../provider/partner-tokens.ts';
import { type Beginning, CARRIED_OVER, type World } from './carried-over.ts';
import { addClient } from './clients.ts';

const PERSON = { email: 'grace@example.test', password: 'seven green forklifts' };

export async function setUpWorld(
  operator: RunOperator,
  { issuer, upstream }: Pick<World, 'issuer' | 'upstream'>,
): Promise<World> {
  const run = (...words: readonly string[]) => valueFrom(operator, words);
  const { email, password } = PERSON;
  const account = ['accounts', 'add', '--email', email, '--name', 'Grace Person'];
  await valueFrom(operator, account, { input: `${password}\n` });
  const name = 'Northern Logistics';
  const { id } = await run('organizations', 'add', '--name', name);
  const membership = ['memberships', 'set', '--organization', id];
  await run(...membership, '--account', email, '--role', 'owner');

  const clients = {
    confidential: await addClient(operator, 'confidential', 'Route Planner', ['--owner', email]),
    public: await addClient(operator, 'public', 'Warehouse Map'),
    machine: await addClient(operator, 'machine', 'Night Sync'),
    resourceServer: await addClient(operator, 'resource-server', 'Warehouse API'),
  };
  await run(...membership, '--client', clients.machine.id, '--role', 'member');
  return { issuer, upstream, person: PERSON, organization: { id, name }, clients };
}

/** What was begun, by its name. */
export type Begun = ReadonlyMap<string, () => Promise<void>>;

let beginnings = 0;

/** Begins everything on the version that serves the world now. */
export async function beginAll(world: World, operator: RunOperator): Promise<Begun> {
  beginnings += 1;
  const partner = partnerTokens(world.issuer, world);
  const beginning: Beginning = { ...world, operator, partner, mark: `round${beginnings}` };
  const begun = new Map<string, () => Promise<void>>();
  for (const { what, begin } of CARRIED_OVER) {
    const finish = await begin(beginning).catch((cause: unknown) => {
      throw new Error(`could not begin ${what}`, { cause });
    });
    begun.set(what, finish);
  }
  return begun;
}
