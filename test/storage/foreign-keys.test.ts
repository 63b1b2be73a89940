import { expect } from 'chai';
import { testDatabase } from '../support/databases.ts';

/** Foreign keys whose rows are few for each value of the first column of an index, with the reason. */
const FEW: Readonly<Record<string, string>> = {
  member_connections_membership_fkey: 'the index finds the connections of one account',
  warehouse_rights_account_membership_fkey: 'the index finds the rights of one account',
  warehouse_rights_client_membership_fkey: 'the index finds the rights of one client',
};

/** Each foreign key that deletes rows or sets them to null, unless an index begins with its columns. */
const WITHOUT_INDEX = `
  SELECT c.conname AS name FROM pg_constraint c
    WHERE c.contype = 'f' AND (c.confdeltype IN ('c', 'n', 'd') OR c.confupdtype IN ('c', 'n', 'd'))
      AND c.connamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.conrelid AND i.indisvalid
        AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey
        -- Rows that a partial index leaves out have no value, so they refer to nothing.
        AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) =
          (SELECT '(' || attname || ' IS NOT NULL)' FROM pg_attribute
            WHERE attrelid = c.conrelid AND attnum = c.conkey[1])))
    ORDER BY name`;

describe('foreign keys', () => {
  const database = testDatabase();

  it('a deletion finds the rows of every foreign key by an index, except for listed keys with few rows', async () => {
    const found = await database.query<{ name: string }>(WITHOUT_INDEX);
    expect(found.map(({ name }) => name)).to.have.members(Object.keys(FEW));
  });

  it('the check finds a foreign key without an index', async () => {
    const found = await database.transaction(async (tx) => {
      await tx.query('CREATE TABLE probe (account_id text REFERENCES accounts ON DELETE SET NULL)');
      return tx.query<{ name: string }>(WITHOUT_INDEX);
    });
    expect(found.map(({ name }) => name)).to.include('probe_account_id_fkey');
  });
});
