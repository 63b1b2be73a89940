/** A refusal arrives as it was meant, with status, headers and code, from each server over HTTP. */
import { expect } from 'chai';
import {
  GraphQLID,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import {
  type Caller,
  type Introspector,
  requireRight,
} from '../../src/resource-server/resource-server.ts';
import { ask } from '../support/oauth.ts';
import { SERVERS } from './servers.ts';
import { API, answering, introspectorOf, type StandIn, startStandIn, TOKEN } from './stand-in.ts';

const ACTIVE = { active: true, token_type: 'Bearer', client_id: 'gate_ci_a', sub: 'acc_a' };
const [GOOD, DEAD, LOST] = [TOKEN, `${TOKEN}dead`, `${TOKEN}lost`];
const QUERY = { query: '{ subject }' };

/** A resolver that needs a right, and one that needs none. */
const SCHEMA = new GraphQLSchema({
  query: new GraphQLObjectType<unknown, { caller: Caller }>({
    name: 'Query',
    fields: {
      subject: {
        type: new GraphQLNonNull(GraphQLString),
        resolve: (_, __, { caller }) => caller.subject,
      },
      receive: {
        type: GraphQLString,
        args: { warehouse: { type: new GraphQLNonNull(GraphQLID) } },
        resolve(_, { warehouse }, { caller }) {
          requireRight(caller, warehouse, 'write');
          return 'received';
        },
      },
    },
  }),
});

describe('in each server a refusal arrives with its status, headers and code', () => {
  let service: StandIn;
  let introspector: Introspector;

  before(async () => {
    service = await startStandIn((answer, form, asked) => {
      const token = new URLSearchParams(form).get('token');
      if (token === LOST) return answer.writeHead(500).end();
      const iss = service.origin;
      const body = { ...ACTIVE, iss, active: token === GOOD, organizations: [] };
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

      it('lets a caller in', async () => {
        const { body, text } = await query(`Bearer ${GOOD}`);
        expect(body, text).to.deep.equal({ data: { subject: 'acc_a' } });
      });

      const METADATA =
        'resource_metadata="https://api.example/.well-known/oauth-protected-resource/graphql"';
      const challenged = (error: string) =>
        new RegExp(`^Bearer error="${error}", .*, ${METADATA}$`);
      for (const [who, authorization, status, code, challenge] of [
        ['nobody', undefined, 401, 'UNAUTHENTICATED', new RegExp(`^Bearer ${METADATA}$`)],
        [
          'another scheme',
          'Basic YTpi',
          401,
          'UNAUTHENTICATED',
          new RegExp(`^Bearer ${METADATA}$`),
        ],
        ['a dead token', `Bearer ${DEAD}`, 401, 'UNAUTHENTICATED', challenged('invalid_token')],
        ['no token', 'Bearer', 400, 'BAD_REQUEST', challenged('invalid_request')],
        ['a service that is away', `Bearer ${LOST}`, 503, 'SERVICE_UNAVAILABLE', undefined],
      ] as const) {
        it(`to ${who}: ${status}, also to a batch`, async () => {
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

      it('to a caller without the right: FORBIDDEN, in the place of the resolver', async () => {
        const text = '{ subject receive(warehouse: "wh_a") }';
        const { status, headers, body } = await query(`Bearer ${GOOD}`, { query: text });
        expect(body).to.deep.include({ data: { subject: 'acc_a', receive: null } });
        const error = { code: 'FORBIDDEN' };
        expect(body).to.have.nested.property('errors[0].extensions').that.deep.equals(error);
        expect(body).to.have.nested.property('errors[0].path').that.deep.equals(['receive']);
        const isSaid = /Yoga|Apollo/.test(name);
        expect(status).to.equal(isSaid ? 403 : 200);
        if (isSaid) expect(headers.get('www-authenticate')).to.include('insufficient_scope');
      });
    });
  }
});
