/** Sets up a deployment with the operator command of the version that runs it. */
import { type RunOperator, valueFrom } from '../../operator/run-operator.ts';
import { partnerTokens } from '../../provider/partner-tokens.ts';
import { CARRIED_OVER, type ServedWorld, type World } from './carried-over.ts';
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

/** Functions that finish the started things, keyed by `what` of each. */
export type Unfinished = ReadonlyMap<string, () => Promise<void>>;

let rounds = 0;

/** Starts everything on the version whose node currently answers requests. */
export async function startAll(world: World, operator: RunOperator): Promise<Unfinished> {
  rounds += 1;
  const partner = partnerTokens(world.issuer, world);
  const served: ServedWorld = { ...world, operator, partner, mark: `round${rounds}` };
  const unfinished = new Map<string, () => Promise<void>>();
  for (const { what, start } of CARRIED_OVER) {
    const finish = await start(served).catch((cause: unknown) => {
      throw new Error(`could not start ${what}`, { cause });
    });
    unfinished.set(what, finish);
  }
  return unfinished;
}
