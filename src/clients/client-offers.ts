/** Hands clients over: an owner offers a client, and the receiver accepts or declines it. */
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import { lockAccount, lockedTransactionOf, transactionOf } from '../storage/account-turns.ts';
import { expiryJob } from '../storage/cleaning.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import type { Client } from './client.ts';
import { type ClientChecks, refuseMoreThan, refuseTakenName } from './client-creation.ts';

export type ClientOffers = ReturnType<typeof createClientOffers>;

export const OFFER_DAYS = 7;
const OFFER_ID = /^co_[A-Za-z0-9_-]{22}$/;
/** Maximum length of a list of offers, which has only one page. */
const MAX_LISTED = 100;

export interface ClientOffer {
  readonly id: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly redirectUris: readonly string[];
  /** The address to which the owner offered the client, as it was typed. */
  readonly email: string;
  /** Null if no account had that address. Never shown to the owner of the client. */
  readonly toAccountId: string | null;
  readonly fromAccountId: string;
  readonly fromName: string;
  readonly fromEmail: string;
  readonly expiresAt: Date;
}

export function createClientOffers(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly checks?: ClientChecks | undefined;
  /** Removes the client from the cache and reads it from the database. */
  readonly readChanged: (id: string) => Promise<Client>;
}) {
  const { database, clock, checks, readChanged } = parts;

  /** @param condition parameters begin at `$2` */
  const find = (queries: Queries, condition: string, values: readonly string[]) =>
    queries.query<ClientOffer>(
      `SELECT o.id, c.id AS "clientId", c.name AS "clientName", c.redirect_uris AS "redirectUris",
          o.email, o.to_account_id AS "toAccountId", a.id AS "fromAccountId",
          a.name AS "fromName", a.email AS "fromEmail", o.expires_at AS "expiresAt"
        FROM client_offers o JOIN clients c ON c.id = o.client_id
          JOIN accounts a ON a.id = o.from_account_id
        WHERE o.expires_at > $1 AND ${condition}
        ORDER BY o.expires_at, o.id LIMIT ${MAX_LISTED}`,
      [new Date(clock()), ...values],
    );

  async function findOfferOf(clientId: string, queries: Queries = database) {
    const [offer] = await find(queries, 'o.client_id = $2', [clientId]);
    return offer;
  }

  async function findOfferTo(accountId: string, id: string, queries: Queries = database) {
    if (!OFFER_ID.test(id)) return undefined;
    const [offer] = await find(queries, 'o.to_account_id = $2 AND o.id = $3', [accountId, id]);
    return offer;
  }

  const remove = async (tx: Queries, { id }: ClientOffer): Promise<boolean> =>
    (await tx.query('DELETE FROM client_offers WHERE id = $1 RETURNING 1', [id])).length > 0;

  return {
    /** Returns the open offer of this client; undefined if there is none. */
    findOfferOf,

    /** Returns the open offer with this id to this user; undefined if there is none. */
    findOfferTo,

    /** Returns the open offers to this user; those that expire next come first. */
    listOffersTo: (accountId: string): Promise<ClientOffer[]> =>
      find(database, 'o.to_account_id = $2', [accountId]),

    /**
     * Offers a client of this owner.
     *
     * @param to `accountId`: undefined if no account has the address, which the owner must not learn.
     * @returns the new offer; undefined if the client is offered to this address already
     * @throws Refusal `client_not_offered` or `client_offered`
     */
    offer(
      { id, ownerAccountId }: { readonly id: string; readonly ownerAccountId: string },
      to: { readonly email: string; readonly accountId: string | undefined },
      inTransaction: InTransaction,
    ): Promise<ClientOffer | undefined> {
      // Wait for a suspension of the owner in progress: it ends the open offers.
      return lockedTransactionOf(database, ownerAccountId, async (tx) => {
        const [own] = await tx.query(
          `SELECT FROM clients WHERE id = $1 AND owner_account_id = $2 AND suspended_at IS NULL
            AND kind = 'confidential' FOR UPDATE`,
          [id, ownerAccountId],
        );
        if (!own) {
          const remedy = 'Ask the operator of this service.';
          throw new Refusal(
            'client_not_offered',
            'This client cannot be handed over here.',
            remedy,
          );
        }
        const open = await findOfferOf(id, tx);
        if (open?.email === to.email) return undefined;
        if (open) {
          const problem = 'This client is already offered to someone.';
          throw new Refusal('client_offered', problem, 'Withdraw that offer first.');
        }
        // The previous offer may have expired without being deleted yet.
        await tx.query('DELETE FROM client_offers WHERE client_id = $1', [id]);
        const expiresAt = new Date(clock() + OFFER_DAYS * 86_400_000);
        await tx.query(
          `INSERT INTO client_offers
              (id, client_id, from_account_id, email, to_account_id, expires_at)
            VALUES ($1, $2, $3, $4, (SELECT id FROM accounts WHERE id = $5), $6)`,
          [randomId('co_', 22), id, ownerAccountId, to.email, to.accountId ?? null, expiresAt],
        );
        await inTransaction(tx);
        return findOfferOf(id, tx);
      });
    },

    /** Withdraws or declines an offer for the account `by`. @returns false if it has ended */
    endOffer: (by: string, offer: ClientOffer, inTransaction: InTransaction): Promise<boolean> =>
      transactionOf(database, by, async (tx) => {
        const isEnded = await remove(tx, offer);
        if (isEnded) await inTransaction(tx);
        return isEnded;
      }),

    /**
     * Makes the receiver the owner. The client keeps its secrets, connections and tokens.
     *
     * @param maxOfOwner maximum number of the receiver's clients, including this one.
     * @throws Refusal `offer_over`, `clients_limit`, or `client_invalid` if the receiver may not use
     *   the name of the client
     */
    async acceptOffer(
      accountId: string,
      found: ClientOffer,
      maxOfOwner: number,
      inTransaction: InTransaction,
    ): Promise<Client> {
      const { clientId, fromAccountId } = found;
      const accept = async (tx: Queries): Promise<void> => {
        // Lock accounts before the client, in the order that deletions use, to avoid deadlocks. A
        // suspension then either waits or has already ended the offer.
        for (const id of [accountId, fromAccountId].sort()) await lockAccount(tx, id);
        await tx.query('SELECT FROM clients WHERE id = $1 FOR UPDATE', [clientId]);
        const offer = await findOfferTo(accountId, found.id, tx);
        if (!offer || !(await remove(tx, offer))) {
          const problem = 'This offer is no longer open.';
          throw new Refusal('offer_over', problem, 'Ask for another one.');
        }
        await refuseMoreThan(maxOfOwner, accountId, tx);
        await changeOwner(tx, clientId, accountId, new Date(clock()));
        const handedOver = 'UPDATE clients SET handed_over_by = $2 WHERE id = $1';
        await tx.query(handedOver, [clientId, fromAccountId]);
        const client = { ownerAccountId: accountId, redirectUris: offer.redirectUris };
        // Check after the change of owner: before it, a verified client's own name counts as taken.
        await refuseTakenName(tx, checks, { ...client, name: offer.clientName });
        // The client counts as a new client of its new owner, on each of its hosts.
        const moved = { ...client, id: clientId, formerRedirectUris: [] };
        await checks?.followClientBlocks(tx, moved);
        await inTransaction(tx);
      };
      await transactionOf(database, accountId, accept);
      return readChanged(clientId);
    },

    removeExpiredOffers: expiryJob({ database, clock }, [
      { table: 'client_offers', column: 'expires_at' },
    ]),
  };
}

/** Changes the owner; a trigger stores the time. @returns false if there is no such client */
export async function changeOwner(
  tx: Queries,
  id: string,
  owner: string | undefined,
  at: Date,
): Promise<boolean> {
  // Remove the creation key, so that no form of the new owner finds this client.
  const changed = await tx.query(
    `UPDATE clients SET updated_at = $2, owner_account_id = $3, creation_key = NULL,
        verified_at = NULL WHERE id = $1 RETURNING 1`,
    [id, at, owner ?? null],
  );
  return changed.length > 0;
}
