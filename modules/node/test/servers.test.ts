/** Each GraphQL server sends refusals over HTTP with the right status, headers and code. */
import { expect } from 'chai';
import {
  type GraphQLFieldConfig,
  GraphQLID,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import { ask } from '../../../test/support/oauth.ts';
import { type Caller, type Introspector, requireRight } from '../src/resource-server.ts';
import { SERVERS } from './servers.ts';
import { API, answering, introspectorOf, type StandIn, startStandIn, TOKEN } from './stand-in.ts';

const ACTIVE = { active: true, token_type: 'Bearer', client_id: 'gate_ci_a', sub: 'acc_a' };
const [VALID, ENDED, FAILING] = [TOKEN, `${TOKEN}revoked`, `${TOKEN}failing`];
const QUERY = { query: '{ subject }' };

const receive = (type: GraphQLOutputType): GraphQLFieldConfig<unknown, { caller: Caller }> => ({
  type,
  args: { warehouse: { type: new GraphQLNonNull(GraphQLID) } },
  resolve(_, { warehouse }, { caller }) {
    requireRight(caller, warehouse, 'write');
    return 'received';
  },
});

/** Resolvers that need a right, and one that needs none. */
const SCHEMA = new GraphQLSchema({
  query: new GraphQLObjectType<unknown, { caller: Caller }>({
    name: 'Query',
    fields: {
      subject: {
        type: new GraphQLNonNull(GraphQLString),
        resolve: (_, __, { caller }) => caller.subject,
      },
      receive: receive(GraphQLString),
      mustReceive: receive(new GraphQLNonNull(GraphQLString)),
    },
  }),
});

describe('refusals by GraphQL servers', () => {
  let service: StandIn;
  let introspector: Introspector;

  before(async () => {
    service = await startStandIn((answer, form, asked) => {
      const token = new URLSearchParams(form).get('token');
      if (token === FAILING) return answer.writeHead(500).end();
      const iss = service.origin;
      const body = { ...ACTIVE, iss, active: token === VALID, organizations: [] };
      return answering(body)(answer, form, asked);
    });
    introspector = introspectorOf(API, {
      issuer: service.origin,
      resource: 'https://api.example/graphql',
      onFailure: () => {},
    });
  });

  for (const [name, start] of Object.entries(SERVERS)) {
    describe(name, () => {
      let url: URL;
      before(async () => {
        url = await start(SCHEMA, introspector);
      });

      const query = (authorization: string | undefined, body: object = QUERY) =>
        ask(url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            ...(authorization !== undefined && { authorization }),
          },
          body: JSON.stringify(body),
        });

      it('the GraphQL server accepts a caller with a valid token', async () => {
        const { body, text } = await query(`Bearer ${VALID}`);
        expect(body, text).to.deep.equal({ data: { subject: 'acc_a' } });
      });

      const METADATA = 'resource_metadata="https://api.example/.well-known/oauth-protected-resource/graphql"';
      const challenged = (error: string) => new RegExp(`^Bearer error="${error}", .*, ${METADATA}$`);
      for (const [what, authorization, status, code, challenge] of [
        ['no credentials', undefined, 401, 'UNAUTHENTICATED', new RegExp(`^Bearer ${METADATA}$`)],
        ['another scheme', 'Basic YTpi', 401, 'UNAUTHENTICATED', new RegExp(`^Bearer ${METADATA}$`)],
        ['a revoked token', `Bearer ${ENDED}`, 401, 'UNAUTHENTICATED', challenged('invalid_token')],
        ['Bearer without a token', 'Bearer', 400, 'BAD_REQUEST', challenged('invalid_request')],
        ['a failure of the service', `Bearer ${FAILING}`, 503, 'SERVICE_UNAVAILABLE', undefined],
      ] as const) {
        it(`the GraphQL server answers ${what} with ${status}, even in a batch`, async () => {
          const isBatching = !/graphql-http|Express/.test(name);
          for (const body of isBatching ? [QUERY, [QUERY, QUERY]] : [QUERY]) {
            const answer = await query(authorization, body);
            expect(answer.status, answer.text).to.equal(status);
            expect(answer.body).to.have.nested.property('errors[0].extensions.code', code);
            expect(answer.text).to.not.include('"http"').and.not.include('"data":{');
            expect(answer.headers.get('cache-control')).to.equal('no-store');
            if (challenge) expect(answer.headers.get('www-authenticate')).to.match(challenge);
            else expect(answer.headers.get('retry-after')).to.equal('2');
          }
        });
      }

      it('the GraphQL server reports FORBIDDEN at the resolver to a caller without the right', async () => {
        const text = '{ subject receive(warehouse: "wh_a") }';
        const { status, headers, body } = await query(`Bearer ${VALID}`, { query: text });
        expect(body).to.deep.include({ data: { subject: 'acc_a', receive: null } });
        const error = { code: 'FORBIDDEN' };
        expect(body).to.have.nested.property('errors[0].extensions').that.deep.equals(error);
        expect(body).to.have.nested.property('errors[0].path').that.deep.equals(['receive']);
        const hasStatus = /Yoga|Apollo/.test(name);
        expect(status).to.equal(hasStatus ? 403 : 200);
        if (hasStatus) expect(headers.get('www-authenticate')).to.include('insufficient_scope');
      });

      it('the GraphQL server answers a refusal that leaves no data with the status that the guide names', async () => {
        const { status, body } = await query(`Bearer ${VALID}`, {
          query: '{ subject mustReceive(warehouse: "wh_a") }',
        });
        expect(body).to.have.nested.property('errors[0].extensions.code', 'FORBIDDEN');
        expect(body.data ?? null).to.equal(null);
        expect(status).to.equal(/Yoga|Apollo|Mercurius/.test(name) ? 403 : 200);
      });
    });
  }
});
