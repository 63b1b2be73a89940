/** The refusals of a protected API, before any of its own code runs, and how each GraphQL server sends them over HTTP. */
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
import { rawRequest } from '../../../test/support/raw-request.ts';
import {
  type Caller,
  callerContext,
  type Introspector,
  protectedResourceMetadata,
  type ReceivedRequest,
  requireRight,
  useCaller,
} from '../src/resource-server.ts';
import { SERVERS } from './servers.ts';
import { API, bearer, introspectorOf, type StandIn, startService, TOKEN } from './stand-in.ts';
import { startWarehouseApi, type WarehouseApi } from './warehouse-api.ts';

const BEARER = `Bearer ${TOKEN}`;
const JSON_TYPE = { 'content-type': 'application/json' };
const QUERY = '{"query":"{ caller { subject } }"}';
const INVALID_TOKEN =
  'Bearer error="invalid_token", error_description="the access token or API key is unknown, expired or revoked"';

describe('the refusals of a protected API', () => {
  let service: StandIn;
  let introspector: Introspector;
  let api: WarehouseApi;

  before(async () => {
    service = await startService(() => undefined);
    introspector = introspectorOf(API, { issuer: service.origin });
    api = await startWarehouseApi(introspector);
  });

  async function post(headers: Record<string, string>) {
    const answer = await ask(api.url, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body: QUERY });
    expect(answer.body).to.not.have.property('data');
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    const challenge = answer.headers.get('www-authenticate');
    return { status: answer.status, challenge, body: answer.body };
  }

  /** Defines a test in which the service must not be asked. */
  function itLocally(title: string, rule: () => Promise<void>): void {
    it(title, async () => {
      const before = service.asked.length;
      await rule();
      expect(service.asked.length - before).to.equal(0);
    });
  }

  itLocally('an API call without credentials gets a challenge without an error code', async () => {
    const message = 'an access token or API key is required';
    const errors = [{ message, extensions: { code: 'UNAUTHENTICATED' } }];
    for (const authorization of [undefined, 'Basic YTpi', TOKEN, `Token ${TOKEN}`]) {
      const answer = await post(authorization === undefined ? {} : { authorization });
      expect(answer).to.include({ status: 401, challenge: 'Bearer' });
      expect(answer.body).to.deep.equal({ errors });
    }
  });

  it('a second Authorization header, which Node.js hides, is refused with invalid_request', async () => {
    const other = `Bearer ${TOKEN.toUpperCase()}`;
    const headers = ['host', api.url.host, 'authorization', BEARER, 'authorization', other];
    const answer = await rawRequest(Number(api.url.port), '/graphql', { method: 'POST', headers });
    expect(answer.status).to.equal(400);
    const error = 'error="invalid_request", error_description="send only one Authorization header"';
    expect(answer.headers.get('www-authenticate')).to.equal(`Bearer ${error}`);
  });

  itLocally(
    'a value in the form of a token with a wrong checksum is invalid, and the service is not asked',
    async () => {
      for (const value of [`gate_at_${'x'.repeat(95)}`, `gate_mt_${'x'.repeat(49)}`, `gate_key_${'x'.repeat(49)}`]) {
        const answer = await post({ authorization: `Bearer ${value}` });
        expect(answer).to.include({ status: 401, challenge: INVALID_TOKEN });
      }
    },
  );

  it('a fetch Request, or header names in any letter case, get the same refusals', async () => {
    const url = 'https://api.example/graphql';
    const unknown = 'the access token or API key is unknown, expired or revoked';
    const requests: [ReceivedRequest, number, string, string?][] = [
      [new Request(url), 401, 'an access token or API key is required'],
      [new Request(`${url}?access_token=x`), 400, 'send the access token in the Authorization header, not in the URL'],
      [new Request(url, { headers: { authorization: BEARER } }), 401, unknown, 'service'],
      [bearer(`gate_mt_${'x'.repeat(49)}`), 401, unknown],
      [
        new Request(url, { method: 'POST', body: new URLSearchParams('a=b') }),
        400,
        'send JSON, and the access token in the Authorization header',
      ],
      [{ headers: { AUTHORIZATION: [BEARER, BEARER] } }, 400, 'send only one Authorization header'],
      [bearer(''), 400, 'the Authorization header has no access token'],
      [bearer('a, Bearer b'), 400, 'send only one access token'],
    ];
    for (const [request, status, message, decidedBy = 'request'] of requests) {
      const { refusal, decidedBy: decided } = await introspector.identify(request);
      expect({ ...refusal, decidedBy: decided }).to.include({ status, message, decidedBy });
      // A refusal can be passed to Response as it is.
      const response = new Response(refusal?.body, refusal);
      expect(response.status).to.equal(status);
      expect(response.headers.get('www-authenticate')).to.match(/^Bearer/);
    }
  });

  it('graphql-http answers a refusal with its status text, also without the request of Node', async () => {
    const twice = { rawHeaders: ['Authorization', BEARER, 'Authorization', BEARER] };
    for (const [raw, status, statusText] of [
      [twice, 400, 'Bad Request'],
      [new Request(api.url), 401, 'Unauthorized'],
      [undefined, 401, 'Unauthorized'],
    ] as const) {
      const refused = await callerContext(introspector)({ headers: bearer(TOKEN).headers, url: '/graphql', raw });
      expect(refused).to.have.property('1').that.includes({ status, statusText });
    }
  });

  it('refusals link to the metadata of the API, which names Gatehouse as its authorization server (RFC 9728)', () => {
    const issuer = 'https://auth.example';
    for (const [resource, path] of [
      ['http://api.example', ''],
      ['https://api.example/', ''],
      ['https://api.example:8443/v1/graphql', '/v1/graphql'],
      ['https://api.example/graphql?tenant=a', '/graphql?tenant=a'],
    ] as const) {
      const found = protectedResourceMetadata({ issuer, resource });
      const url = `${new URL(resource).origin}/.well-known/oauth-protected-resource${path}`;
      expect(found.document).to.deep.equal({
        resource,
        authorization_servers: [issuer],
        bearer_methods_supported: ['header'],
      });
      expect(found).to.include({ url, parameter: `resource_metadata="${url}"` });
      expect(found.path).to.equal(url.slice(new URL(url).origin.length));
    }
    for (const resource of ['api.example', 'ftp://api.example', 'https://api.example/#a']) {
      expect(() => protectedResourceMetadata({ issuer, resource })).to.throw(TypeError);
    }
  });
});

const CALLER = { token_type: 'Bearer', client_id: 'gate_ci_a', sub: 'acc_a', organizations: [] };
const [VALID, ENDED, FAILING] = [TOKEN, `${TOKEN}revoked`, `${TOKEN}failing`];
const SUBJECT_QUERY = { query: '{ subject }' };

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
      broken: {
        type: GraphQLString,
        resolve: () => {
          throw new Error('of the API itself');
        },
      },
    },
  }),
});

describe('refusals by GraphQL servers', () => {
  let service: StandIn;
  let introspector: Introspector;

  before(async () => {
    const answers: Record<string, object> = { [VALID]: CALLER, [FAILING]: { iss: 'https://other.example' } };
    service = await startService((token) => answers[token]);
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

      const query = (authorization: string | undefined, body: object = SUBJECT_QUERY) =>
        ask(url, {
          method: 'POST',
          headers: { ...JSON_TYPE, ...(authorization !== undefined && { authorization }) },
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
          for (const body of isBatching ? [SUBJECT_QUERY, [SUBJECT_QUERY, SUBJECT_QUERY]] : [SUBJECT_QUERY]) {
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

      if (name === 'Yoga 5') {
        it('the GraphQL server still masks an error of the API itself', async () => {
          const { text } = await query(`Bearer ${VALID}`, { query: '{ broken }' });
          expect(text).to.include('Unexpected error.').and.not.include('of the API itself');
        });

        it('the plugin accepts a result of another executor whose errors are null', () => {
          const { onExecuteDone } = useCaller(introspector).onExecute();
          expect(() => onExecuteDone({ result: { data: { subject: 'acc_a' }, errors: null } })).not.to.throw();
        });
      }

      it('if a refusal leaves no data, the GraphQL server answers with the status that the guide names', async () => {
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
