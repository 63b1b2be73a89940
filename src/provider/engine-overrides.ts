/**
 * Every patch of the engine, in one list: what it changes, why, and the test that fails without it.
 * We use only the engine's authorization endpoint; all other endpoints are our own routes.
 */
import { type Client as EngineClient, type KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { AnswerRefusal } from './authorization-answers.ts';
import type { EngineClients } from './engine-clients.ts';
import type { SessionModel, SessionWrites } from './session-writes.ts';

/**
 * All reasons below were verified for this version. A test fails with any other version: then check the list, remove
 * the overrides that the engine no longer needs, and change this number.
 */
export const ENGINE_VERSION = '9.13.3';

export interface Ours {
  readonly clients: EngineClients;
  readonly sessions: SessionWrites;
  saveCode(code: Code, ctx: KoaContextWithOIDC | undefined): Promise<string>;
  readonly refuse: AnswerRefusal;
}

export interface Override {
  readonly member: string;
  readonly changes: string;
  readonly because: string;
  /** The test in `test/provider/` that fails if the override is missing or no longer called. */
  readonly test: readonly [file: string, title: string];
  install(engine: Engine, ours: Ours): void;
}

export function overrideEngine(provider: Provider, ours: Ours): void {
  for (const { install } of OVERRIDES) install(provider as unknown as Engine, ours);
}

export const OVERRIDES: readonly Override[] = [
  {
    member: 'Client.find',
    changes: 'clients come from our registry, which parses each once per version',
    because: 'the engine caches 100 parsed clients, and parses all others on every request',
    test: ['token-endpoint.test.ts', 'the suspension of a client is recorded as the cause'],
    install({ Client }, { clients }) {
      Client.find = clients.find;
    },
  },
  {
    member: 'Client.prototype.responseModeAllowed',
    changes: 'responses use the query',
    because: 'the engine also supports the fragment and form posts',
    test: ['authorization-endpoint.test.ts', 'state, iss and the URL of the page about the error'],
    install({ Client: { prototype } }, { clients }) {
      prototype.responseModeAllowed = (mode) => clients.mayAnswerIn(mode, Provider.ctx);
    },
  },
  {
    member: 'Session.prototype.save',
    changes: 'a session that was ended during a request stays ended, and only a new session sets ' + 'its cookie',
    because: 'the engine writes both at the end of each request, even if the session no longer ' + 'exists',
    test: ['races.ts', 'signing out is final'],
    install({ Session: { prototype } }, { sessions }) {
      prototype.save = function () {
        return sessions.saveAfter(this, Provider.ctx);
      };
    },
  },
  {
    member: 'Session.prototype.resetIdentifier',
    changes: 'only a sign-in of our own gives a session another identifier',
    because: "the engine does it at every resumption, and parallel ones replace each other's " + 'cookie',
    test: ['interactions.test.ts', 'a sign-in gives the session a new identifier'],
    install({ Session: { prototype } }) {
      prototype.resetIdentifier = () => {};
    },
  },
  {
    member: 'AuthorizationCode.prototype.save',
    changes: 'the code belongs to an authorization, which is stored with it',
    because: 'the engine stores codes, grants and tokens separately, and consumes a code in ' + 'several steps',
    test: ['authorization-codes.test.ts', 'is refused and ends only the tokens of that code'],
    install({ AuthorizationCode }, { saveCode }) {
      AuthorizationCode.prototype.save = function () {
        return saveCode(this, Provider.ctx);
      };
    },
  },
  {
    member: 'Grant.prototype.getOIDCScopeFiltered',
    changes: 'a grant appears to have a scope, whose name is empty',
    because:
      'there are no scopes here, but the engine refuses an approval without any; it checks ' +
      'that the text is not empty and then splits it into nothing',
    test: ['token-endpoint.test.ts', 'to a refresh have the same four members'],
    install({ Grant }) {
      Grant.prototype.getOIDCScopeFiltered = () => ' ';
    },
  },
  {
    member: 'registerResponseMode',
    changes: 'a refused authorization request is answered in the query, with a page about the error',
    because: 'the engine uses the fragment if a token was requested there, and sends no error_uri',
    test: ['authorization-endpoint.test.ts', 'state, iss and the URL of the page about the error'],
    install(engine, { refuse }) {
      // Clients cannot request this mode, because `responseModeAllowed` allows only `query`.
      const mode = 'refusal';
      engine.registerResponseMode(mode, refuse);
      // The engine emits this event before it chooses the mode.
      engine.on('authorization.error', ({ oidc }: KoaContextWithOIDC) => {
        if (oidc.params) oidc.params.response_mode = mode;
      });
    },
  },
];

/** The engine, with members that its types omit. */
type Engine = Pick<Provider, 'on' | 'registerResponseMode'> & {
  readonly Client: {
    find: EngineClients['find'];
    readonly prototype: { responseModeAllowed(this: EngineClient, mode: string | undefined): boolean };
  };
  readonly Session: {
    readonly prototype: { save(this: SessionModel): Promise<void>; resetIdentifier(this: SessionModel): void };
  };
  readonly Grant: { readonly prototype: { getOIDCScopeFiltered(): string } };
  readonly AuthorizationCode: { readonly prototype: { save(this: Code): Promise<string> } };
};

type Code = InstanceType<Provider['AuthorizationCode']>;
