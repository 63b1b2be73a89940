/** Explains an organization, a warehouse, a connection or a request. */
import { actionInEnglish, CAUSES } from '../../accounts/activity/activity-words.ts';
import type { AuditRecord } from '../../accounts/activity/audit.ts';
import type { PlaceKind } from '../../accounts/organizations/places.ts';
import { Refusal } from '../../base/refusal.ts';
import { countText } from '../../storage/pages.ts';
import { inEnglish } from '../../texts/texts.ts';
import { accessText } from '../places/places.ts';
import type { Registries } from '../registries.ts';
import { by, explainParties } from './credentials.ts';
import type { Explanation } from './explanation.ts';

/** Maximum number of removals to search, far more than are needed. */
const MAX_REMOVALS = 10_000;

export const explainPlace =
  (kind: PlaceKind) =>
  async (registries: Registries, id: string): Promise<Explanation> => {
    const { organizations, access, audit } = registries;
    const place = await findOrUndefined(organizations.find(kind, id));
    if (place) {
      const { warehouses, ...lost } = await organizations.dependents(kind, id);
      const reach = accessText(lost);
      if (kind === 'warehouse') {
        const why = `${reach} have explicit rights in it; owners and admins of its organization have all rights.`;
        const remedy = `See \`memberships list --warehouse ${id}\`.`;
        const { name, organization } = place;
        return { state: 'active', why, remedy, name, organization };
      }
      const { items, more } = await access.clientBlocks.list({ limit: 1 }, { organizationId: id });
      const size = items.length + more;
      const blocks = size > 0 ? ` The organization blocks ${countText(size)} clients: see \`blocks list\`.` : '';
      return {
        state: 'active',
        why: `The organization has ${reach}, and ${warehouses} warehouses.${blocks}`,
        remedy: `See \`memberships list --organization ${id}\`.`,
        name: place.name,
      };
    }
    const removals = await audit.find({ action: `${kind}_removed`, limit: MAX_REMOVALS });
    const removed = removals.find(({ details }) => details[`${kind}_id`] === id);
    if (!removed) return { state: 'unknown', why: `There is no ${kind} with this ID.` };
    return {
      state: 'revoked',
      why: `The ${kind} was removed${by(removed.actor)}, with all access to it.`,
      name: String(removed.details[`${kind}_name`]),
      revokedAt: removed.at,
    };
  };

/** Returns undefined if the search throws because it finds nothing. */
async function findOrUndefined<Value>(work: Promise<Value>): Promise<Value | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** @param id account ID and client ID, as `connections list` shows them */
export async function explainConnection(registries: Registries, id: string): Promise<Explanation> {
  const [accountId = '', clientId = ''] = id.split('/');
  const { connections } = registries;
  return explainParties(registries, { accountId, clientId }, {}, async () => {
    const [connected] = (await connections.listBoth({ accountId, clientId })).items;
    if (connected) {
      const { connectedAt, lastUsedAt } = connected;
      return {
        state: 'active',
        why: 'The person has connected the client.',
        remedy: `\`connections end ${id}\` ends it.`,
        issuedAt: connectedAt,
        ...(lastUsedAt && { lastUsedAt }),
      };
    }
    const end = await connections.endOf(accountId, clientId);
    if (!end) return { state: 'unknown', why: 'The person never connected the client.' };
    const why = `The connection was ended: ${inEnglish(CAUSES[end.cause])}.`;
    return { state: 'revoked', why, revokedAt: end.at };
  });
}

export async function explainRequest(registries: Registries, id: string): Promise<Explanation> {
  const problem = await registries.clientProblems.ofRequest(id);
  if (!problem) {
    const [done] = await registries.audit.find({ requestId: id, limit: 1 });
    if (done) return explainDone(id, done);
    return {
      state: 'unknown',
      why:
        'The stores have only requests that changed something, and for each client the last ' +
        '100 refused requests of 7 days.',
      remedy: `Search the log for ${id}: the log has a line for each request.`,
    };
  }
  const { step, error, cause, clientId, clientName, at } = problem;
  return {
    state: 'refused',
    why: `The ${step} request of the client was answered with ${error}: ${cause}`,
    remedy: `\`problems list --client ${clientId}\` shows all problems of the client.`,
    client: (await registries.clients.find(clientId)) ?? { id: clientId, name: clientName },
    issuedAt: at,
  };
}

function explainDone(id: string, record: AuditRecord): Explanation {
  const { what, about } = actionInEnglish(record);
  const { accountId, at } = record;
  return {
    state: 'done',
    why: `The audit log has this request: ${[what, about].filter(Boolean).join(': ')}.`,
    remedy: `\`audit --request ${id}\` shows everything that it changed.`,
    ...(accountId !== undefined && { account: { id: accountId } }),
    issuedAt: at,
  };
}
