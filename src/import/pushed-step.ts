/** Compares a batch of pushed lines with the database, and writes the differences. */
import { deleteAccounts } from '../accounts/account-edits.ts';
import { isIdentified, type NamedType, namesOf, type Recorded, recordTimes } from '../accounts/known-times.ts';
import type { Queries } from '../storage/queries.ts';
import type { ImportChange, ImportFacts, ImportStep } from './change.ts';
import { createImportIndex } from './import-index.ts';
import { createFoundProblems, ImportProblems } from './import-problems.ts';
import { type AccessRow, removeAccess, suspendAccounts } from './prune.ts';
import { type PushedLine, removes } from './pushed-line.ts';
import { compareLines } from './steps.ts';
import { findThings, type LineThing } from './things.ts';

const keyOf = ({ type, account, organization, warehouse }: LineThing): string =>
  [type, account, warehouse ?? organization].join(' ');

/** Compares the lines, which have one type and either all set or all remove, with the database. */
export async function stepOf(
  tx: Queries,
  things: readonly LineThing[],
  { now, asksFirst }: Pick<ImportFacts, 'now' | 'asksFirst'>,
): Promise<ImportStep> {
  const [first] = things;
  if (first === undefined) return { changes: [], write: async () => [] };
  const known = things.filter(({ line, own }) => own || !('external_id' in line));
  // Two lines name the same record differently: the caller then applies the lines one by one.
  if (new Set(known.map(keyOf)).size < known.length) throw new ImportProblems([], 1);
  if (removes(first.line)) {
    return first.line.type === 'account' ? removeAccounts(tx, things, now) : removeMembers(tx, first.line.type, things);
  }
  const facts = factsOf(now, asksFirst);
  const refer = (kind: NamedType, id = ''): string => {
    facts.adopted[kind].ids.set(id, id);
    facts.adopted[kind].externalIds.set(id, id);
    return id;
  };
  // From here on, use ids in place of external ids: a record may have no external id.
  const lines = things.map(({ line, own, former, ...thing }) => {
    if (line.type === 'membership' || line.type === 'warehouse_rights') {
      const place = line.type === 'membership' ? 'organization' : 'warehouse';
      const account = refer('account', thing.account);
      return { ...line, account, [place]: refer(place, thing[place]) };
    }
    return {
      ...line,
      external_id: line.external_id ?? own?.external_id ?? null,
      id: own?.id,
      ...(line.type === 'warehouse' && {
        organization: refer('organization', thing.organization),
        former_organization: former && refer('organization', former),
      }),
    };
  });
  const step = await compareLines(tx, first.type, lines as never, facts);
  facts.problems.refuse();
  return step;
}

function factsOf(now: Date, asksFirst: boolean): ImportFacts {
  const nothing = () => ({ ids: new Map(), externalIds: new Map() });
  return {
    index: createImportIndex(),
    now,
    asOf: now,
    adoptByName: false,
    asksFirst,
    skipped: new Set(),
    adopted: { account: nothing(), organization: nothing(), warehouse: nothing() },
    problems: createFoundProblems(),
  };
}

async function removeMembers(
  tx: Queries,
  type: 'membership' | 'warehouse_rights',
  things: readonly LineThing[],
): Promise<ImportStep> {
  const rows = await tx.query<AccessRow & { readonly number: number }>(
    type === 'membership'
      ? `SELECT line.number, m.id, m.account_id, o.id AS organization_id, o.name AS organization_name
          FROM unnest($1::text[], $2::text[], $3::int[]) AS line (account, place, number)
          JOIN organization_memberships m
            ON m.account_id = line.account AND m.organization_id = line.place
          JOIN organizations o ON o.id = m.organization_id`
      : `SELECT line.number, r.id, r.account_id, o.id AS organization_id, o.name AS organization_name,
            w.id AS warehouse_id, w.name AS warehouse_name
          FROM unnest($1::text[], $2::text[], $3::int[]) AS line (account, place, number)
          JOIN warehouse_rights r ON r.account_id = line.account AND r.warehouse_id = line.place
          JOIN warehouses w ON w.id = r.warehouse_id
          JOIN organizations o ON o.id = w.organization_id`,
    [
      things.map(({ account }) => account),
      things.map(({ organization, warehouse }) => warehouse ?? organization),
      things.map(({ line }) => line.number),
    ],
  );
  return {
    changes: rows.map(({ number: line, account_id: account, organization_id: organization }) => ({
      change: 'removed',
      line,
      key: { type: 'membership', account, organization },
    })),
    write: (tx) => removeAccess(tx, type, rows),
  };
}

async function removeAccounts(tx: Queries, things: readonly LineThing[], now: Date): Promise<ImportStep> {
  const active = await tx.query<{ readonly id: string }>(
    'SELECT id FROM accounts WHERE id = ANY($1) AND suspended_at IS NULL',
    [things.map(({ account }) => account)],
  );
  const known = things.flatMap(({ line, own }) => (own ? [{ line, own }] : []));
  const deleted = known.filter(({ line }) => isDeletion(line));
  const suspended = known.filter(({ line, own }) => !isDeletion(line) && active.some(({ id }) => id === own.id));
  return {
    changes: [...deleted, ...suspended].map(({ line, own: { id } }) => ({
      change: 'removed',
      line: line.number,
      key: { type: 'account', external_id: id },
    })),
    async write(tx) {
      const owns = suspended.map(({ own }) => own);
      const records = owns.length > 0 ? await suspendAccounts(tx, owns, now) : [];
      await deleteAccounts(
        tx,
        deleted.map(({ own }) => own.id),
      );
      return [
        ...records,
        ...deleted.map(({ own: { id: accountId, external_id } }) => ({
          action: 'account_deleted' as const,
          accountId,
          details: { ...(external_id !== null && { external_id }) },
        })),
      ];
    },
  };
}

const isDeletion = (line: PushedLine): boolean => removes(line) && line.type === 'account' && line.deleted === true;

/** A suspension is a removal, too: it ends the person's access. */
export const isRemoval = ({ change, fields }: ImportChange): boolean =>
  change === 'removed' || (change === 'changed' && fields?.suspended?.[1] === true);

/** Records the time of each line's record, even if the line changed nothing. */
export async function recordPushed(tx: Queries, things: readonly LineThing[], now: Date): Promise<void> {
  const added = things.filter((thing) => !isIdentified(thing)).map(({ line }) => line);
  const { things: found } = await findThings(tx, added);
  const recorded = [...things.filter(isIdentified), ...found].map((thing): Recorded => {
    const { line, own } = thing;
    const asOf = line.as_of ?? now;
    if (!isDeletion(line)) {
      return { ...thing, asOf, ...(removes(line) && line.type !== 'account' && { end: 'ended' }) };
    }
    return { ...thing, asOf, end: 'deleted', named: own ? namesOf('account', own) : [] };
  });
  await recordTimes(tx, recorded, { now, byImport: false });
}
