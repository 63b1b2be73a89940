/** The stock of the warehouse API, and the rules for access to it. */
import { EventEmitter, on } from 'node:events';
import { buildSchema, GraphQLError } from 'graphql';
import {
  type Caller,
  type Organization,
  requireRight,
  type Warehouse,
  warehousesOf,
} from '../../modules/node/src/resource-server.ts';

export const SCHEMA = buildSchema(`
  "Who is calling, however they authenticated."
  type Caller {
    "authorization_code, client_credentials or api_key"
    method: String!
    "The person's account, or the machine client."
    subject: ID!
    username: String
    clientId: ID
  }
  type Organization { id: ID!, name: String!, role: String!, warehouses: [Warehouse!]! }
  type Warehouse {
    id: ID!
    name: String!
    "What the caller may do here now: read, write, manage."
    rights: [String!]!
    "Needs the right to read."
    stock: [StockLevel!]
  }
  type StockLevel { article: String!, count: Int! }
  type Query {
    caller: Caller!
    organizations: [Organization!]!
    "Needs the right to read."
    stock(warehouse: ID!): [StockLevel!]!
  }
  type Mutation {
    "Needs the right to write."
    adjustStock(warehouse: ID!, article: String!, by: Int!): StockLevel!
  }
  type StockChange { warehouse: Warehouse!, level: StockLevel! }
  type Subscription {
    "Of every warehouse that the caller may read, until that changes."
    stockChanged: StockChange!
  }
`);

interface Context {
  readonly caller: Caller;
}

interface StockLevel {
  readonly article: string;
  readonly count: number;
}

/** The initial stock of every warehouse. */
const DELIVERED = { 'Euro pallets': 120, 'Barrels, 200 l': 36, 'Parcel crates': 84 };

/** Creates the GraphQL resolvers, with the stock in memory. */
export function createStock() {
  const warehouses = new Map<string, Map<string, number>>();
  const changes = new EventEmitter().setMaxListeners(0);

  function levelsIn(id: string): Map<string, number> {
    const levels = warehouses.get(id) ?? new Map(Object.entries(DELIVERED));
    warehouses.set(id, levels);
    return levels;
  }

  function stock({ warehouse }: { warehouse: string }, { caller }: Context): StockLevel[] {
    requireRight(caller, warehouse, 'read');
    return [...levelsIn(warehouse)].map(([article, count]) => ({ article, count }));
  }

  const shownWarehouse = (warehouse: Warehouse) => ({
    ...warehouse,
    stock: (_: object, context: Context) => stock({ warehouse: warehouse.id }, context),
  });
  const shownOrganization = (organization: Organization) => ({
    ...organization,
    warehouses: organization.warehouses.map(shownWarehouse),
  });

  return {
    caller: (_: object, { caller }: Context) => caller,
    organizations: (_: object, { caller }: Context) => caller.organizations.map(shownOrganization),
    stock,
    adjustStock(
      { warehouse, article, by }: { warehouse: string; article: string; by: number },
      { caller }: Context,
    ): StockLevel {
      requireRight(caller, warehouse, 'write');
      const levels = levelsIn(warehouse);
      const before = levels.get(article);
      if (before === undefined) throw refused(`there is no article ${article} in this warehouse`);
      const count = before + by;
      if (count < 0) throw refused(`only ${before} of ${article} in stock`);
      levels.set(article, count);
      const level = { article, count };
      changes.emit('changed', { warehouse, level });
      return level;
    },

    async *stockChanged(_: object, { caller }: Context) {
      const readable = new Map(warehousesOf(caller, 'read').map((one) => [one.id, one]));
      try {
        for await (const [{ warehouse, level }] of on(changes, 'changed', signalOf(caller))) {
          const shown = readable.get(warehouse);
          if (shown) yield { stockChanged: { warehouse: shownWarehouse(shown), level } };
        }
      } catch (error) {
        // End the subscription if the access ended or changed: the next one identifies again.
        if (!caller.signal?.aborted) throw error;
      }
    },
  };
}

const signalOf = ({ signal }: Caller) => (signal ? { signal } : {});

const refused = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT' } });
