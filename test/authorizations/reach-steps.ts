/** Random changes of what tokens reach: memberships, rights, limits and blocks. */
import { expect } from 'chai';
import fc from 'fast-check';
import { isAdmin, RIGHTS, type Right, ROLES, type Role } from '../../src/accounts/access/reach.ts';
import { createOrganizationEndings } from '../../src/authorizations/organization-endings.ts';
import type { Answer } from '../support/oauth.ts';
import { DAY } from './model-memberships.ts';
import {
  type ModelLimit,
  type OrganizationKey,
  organizationOf,
  PLACES,
  type PlaceKey,
  type ReachedPlace,
  type WarehouseKey,
} from './reach-model.ts';
import { required, type Step, type World } from './walked-world.ts';

/** @param role undefined to remove the membership */
const changingRole = ([account, organization, role]: [string, OrganizationKey, Role | undefined]): Step => ({
  name: `${account} is ${role ?? 'no member'} in ${organization}`,
  async run({ reach, memberships }, { service, people, places }) {
    const subject = { accountId: required(people.get(account)).accountId };
    if (role === undefined) await service.memberships.remove(subject, places[organization]);
    else await service.memberships.setRole(subject, places[organization], role);
    if (organization === 'organization') memberships.byCommand(account, role);
    else if (role === undefined) reach.removeMember(account, organization);
    else reach.roles.set(`${account} ${organization}`, role);
  },
});

const changingRights = ([account, warehouse, rights]: [string, WarehouseKey, readonly Right[]]): Step => ({
  name: `${account} may ${rights.join(', ') || 'nothing'} in ${warehouse}`,
  check: ({ reach }) => reach.roles.has(`${account} ${organizationOf(warehouse)}`),
  async run({ reach, memberships }, { service, people, places }) {
    const subject = { accountId: required(people.get(account)).accountId };
    if (rights.length > 0) await service.memberships.setRights(subject, places[warehouse], rights);
    else await service.memberships.removeRights(subject, places[warehouse]);
    reach.rights.set(`${account} ${warehouse}`, rights);
    memberships.rightsByCommand(account, warehouse, rights.length > 0);
  },
});

/** @param limit `until`: in days from now */
const limiting = ([account, client, limit]: [string, string, ModelLimit]): Step => ({
  name: `limit ${client} of ${account} to ${JSON.stringify(limit)}`,
  check: (model) => model.isConnected(account, client) && !model.deleted.has(client),
  async run(model, { service, people, clients, places, time }) {
    const { accountId } = required(people.get(account));
    const { id: clientId } = required(clients.get(client));
    const present = required(await service.connections.find(accountId, clientId)).limit;
    // No step of time leads to this time, see `LIFETIMES`.
    const seconds = limit.until === null ? null : limit.until * DAY + 10;
    const isChanged = await service.connections.limit(
      { accountId, clientId, limit: present },
      {
        places: limit.places?.map((key) => places[key]) ?? null,
        isReadOnly: limit.isReadOnly,
        until: seconds === null ? null : new Date(time.clock() + seconds * 1_000),
      },
    );
    expect(isChanged, 'limit changed').to.equal(true);
    const until = seconds === null ? null : model.now + seconds;
    model.reach.limits.set(`${account} ${client}`, { ...limit, until });
  },
});

/** An admin blocks or unblocks the client in an organization or a warehouse, if `other` is one at this time. */
const blocking = ([place, client, isBlock]: [PlaceKey, string, boolean]): Step => ({
  name: `${isBlock ? 'block' : 'unblock'} ${client} in ${place}`,
  async run(model, { service, people, clients, places }) {
    const { reach } = model;
    const key = `${place} ${client}`;
    const organization = place in PLACES ? (place as OrganizationKey) : organizationOf(place as WarehouseKey);
    const account = { id: required(people.get('other')).accountId, name: 'other' };
    const isChanged = await createOrganizationEndings(service)[isBlock ? 'block' : 'unblock'](
      {
        organization: { id: places[organization], name: organization },
        admin: { account, origin: { address: '192.0.2.1', browser: '' } },
      },
      { id: required(clients.get(client)).id, name: client },
      place === organization ? undefined : { id: places[place], name: place },
    );
    const isAllowed = isAdmin(reach.roles.get(`other ${organization}`)) && !model.deleted.has(client);
    expect(isChanged).to.equal(isAllowed && reach.blocks.has(key) !== isBlock);
    if (!isChanged) return;
    if (isBlock) reach.blocks.add(key);
    else reach.blocks.delete(key);
  },
});

/** The operator sets the policy. @param approved clients that are approved in the same transaction */
const settingPolicy = ([organization, asksFirst, approved]: [OrganizationKey, boolean, readonly string[]]): Step => ({
  name: `${organization} ${asksFirst ? 'asks first' : 'is open'}, approves ${approved.join(' and ')}`,
  async run({ reach, deleted }, { service, clients, places }) {
    await createOrganizationEndings(service).setPolicy(
      { organization: { id: places[organization], name: organization } },
      { asksFirst, allowsApiKeys: true },
      approved.map((client) => ({ id: required(clients.get(client)).id, name: client })),
    );
    if (asksFirst) reach.askFirst.add(organization);
    else reach.askFirst.delete(organization);
    const existing = approved.filter((client) => !deleted.has(client));
    for (const client of existing) reach.approvals.set(`${organization} ${client}`, true);
  },
});

const deciding = ([organization, client, isApproved]: [OrganizationKey, string, boolean]): Step => ({
  name: `${organization} ${isApproved ? 'approves' : 'declines'} ${client}`,
  async run({ reach, deleted }, { service, clients, places }) {
    const key = `${organization} ${client}`;
    const endings = createOrganizationEndings(service);
    const by = { organization: { id: places[organization], name: organization } };
    const decided = { id: required(clients.get(client)).id, name: client };
    const isChanged = await (isApproved ? endings.approve(by, decided, () => true) : endings.decline(by, decided));
    expect(isChanged).to.equal(!deleted.has(client) && reach.approvals.get(key) !== isApproved);
    if (isChanged) reach.approvals.set(key, isApproved);
  },
});

export const account = fc.constantFrom('person', 'other');
export const client = fc.constantFrom('confidential', 'otherConfidential');
/** Picks one of these values, earlier ones more often. */
export const often = <Value>(...values: readonly Value[]): fc.Arbitrary<Value> =>
  fc.oneof(
    ...values.map((value, index) => {
      return { weight: values.length - index, arbitrary: fc.constant(value) };
    }),
  );

const organization = fc.constantFrom<OrganizationKey>('organization', 'elsewhere');
const warehouse = fc.constantFrom(...Object.values(PLACES).flat());
const place = fc.oneof(organization, warehouse);
const role = fc.option(fc.constantFrom(...ROLES), { nil: undefined });
const limit = fc.record<ModelLimit>({
  places: fc.option(
    fc.subarray<PlaceKey>(['organization', 'elsewhere', 'riga', 'hamburg', 'rotterdam'], {
      minLength: 1,
    }),
  ),
  isReadOnly: fc.boolean(),
  until: often(null, 2, 30),
});

/** Lets 20 seconds pass first, so that the database dates the step later than all steps before. */
export const later = (step: Step): Step => ({
  ...step,
  async run(model, world) {
    world.time.advance(20);
    model.pass(20);
    await world.service.clean();
    await step.run(model, world);
  },
});

export const anyReachStep = fc.oneof(
  { weight: 2, arbitrary: fc.tuple(account, organization, role).map(changingRole).map(later) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(account, warehouse, fc.subarray([...RIGHTS]))
      .map(changingRights)
      .map(later),
  },
  { weight: 3, arbitrary: fc.tuple(account, client, limit).map(limiting) },
  { weight: 2, arbitrary: fc.tuple(place, client, fc.boolean()).map(blocking) },
  { weight: 2, arbitrary: fc.tuple(organization, client, fc.boolean()).map(deciding) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(organization, fc.boolean(), fc.subarray(['confidential', 'otherConfidential']))
      .map(settingPolicy),
  },
);

/** Returns the organizations of an introspection response, with the keys of the model. */
export function reachedIn(body: Answer['body'], places: World['places']): readonly ReachedPlace[] {
  const keys = new Map(Object.entries(places).map(([key, id]) => [id, key]));
  const organizations = body.organizations as readonly {
    id: string;
    role: Role;
    warehouses: readonly { id: string; rights: readonly Right[] }[];
  }[];
  return organizations.map(({ id, role, warehouses }) => ({
    organization: keys.get(id) as OrganizationKey,
    role,
    warehouses: warehouses.map((one) => [keys.get(one.id) as WarehouseKey, one.rights] as const),
  }));
}
