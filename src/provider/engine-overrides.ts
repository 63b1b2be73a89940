/**
 * Every patch of the engine, in one list: what it changes, why, and the test that fails without it.
 * Of its endpoints we use the authorization endpoint only; the others are routes of our own.
 */
import { type Client as EngineClient, type KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { AnswerRefusal } from './authorization-answers.ts';
import type { EngineClients } from './engine-clients.ts';
import type { SessionModel, SessionWrites } from './session-writes.ts';

/**
 * The version in which every reason below was seen. With another one a test fails: go through the
 * list, remove what the engine now does by itself, and raise this.
 */
export const ENGINE_VERSION = '9.13.3';

/** Our replacements for parts of the engine. */
export interface Ours {
  readonly clients: EngineClients;
  readonly sessions: SessionWrites;
  /** @returns the value of the code */
  saveCode(code: Code, ctx: KoaContextWithOIDC | undefined): Promise<string>;
  readonly refuse: AnswerRefusal;
}

export interface Override {
  readonly member: string;
  readonly changes: string;
  readonly because: string;
  /** Fails if the override is missing or no longer called. In `test/provider/`. */
  readonly test: readonly [file: string, title: string];
  install(engine: Engine, ours: Ours): void;
}

export function overrideEngine(provider: Provider, ours: Ours): void {
  for (const { install } of OVERRIDES) install(provider as unknown as Engine, ours);
}

export const OVERRIDES: readonly Override[] = [
  {
    member: 'Client.find',
    changes: 'clients are those of our registry, each parsed once per version',
    because: 'the engine keeps 100 parsed clients, and parses all others at each request',
    test: [
      'recent-problems.test.ts',
      'a suspended client is told so, in the place that its owner reads',
    ],
    install({ Client }, { clients }) {
      Client.find = clients.find;
    },
  },
  {
    member: 'Client.prototype.redirectUriAllowed',
    changes: 'the redirect URI of tests is good for one running test, and never else',
    because: 'the engine knows registered ones only',
    test: [
      'client-tests.test.ts',
      'is refused to a client that has it registered, outside of a test',
    ],
    install({ Client: { prototype } }, { clients }) {
      const { redirectUriAllowed } = prototype;
      prototype.redirectUriAllowed = function (uri) {
        return clients.isOfTest(this, uri, Provider.ctx) ?? redirectUriAllowed.call(this, uri);
      };
    },
  },
  {
    member: 'Client.prototype.responseModeAllowed',
    changes: 'answers go into the query',
    because: 'the engine also answers in the fragment and by a posted form',
    test: ['authorization-endpoint.test.ts', 'with its state, our issuer and a page'],
    install({ Client: { prototype } }, { clients }) {
      prototype.responseModeAllowed = (mode) => clients.mayAnswerIn(mode, Provider.ctx);
    },
  },
  {
    member: 'Session.prototype.save',
    changes: 'a session that was ended meanwhile stays ended, and only a new one names its cookie',
    because:
      'the engine writes both at the end of each request, whether the session is still there or not',
    test: ['sign-out.ts', 'signing out is final'],
    install({ Session: { prototype } }, { sessions }) {
      prototype.save = function () {
        return sessions.saveAfter(this, Provider.ctx);
      };
    },
  },
  {
    member: 'Session.prototype.resetIdentifier',
    changes: 'a session gets another identifier where somebody signs in',
    because:
      'the engine does it at every resumption, and several at once take the cookie from each other',
    test: ['interactions.test.ts', 'the session gets another identifier from a sign-in'],
    install({ Session: { prototype } }, { sessions }) {
      const { resetIdentifier } = prototype;
      prototype.resetIdentifier = function () {
        if (sessions.signsIn(Provider.ctx)) resetIdentifier.call(this);
      };
    },
  },
  {
    member: 'AuthorizationCode.prototype.save',
    changes: 'the code is that of an authorization, which is kept with it',
    because:
      'the engine keeps codes, grants and tokens apart, and consumes a code in several steps',
    test: ['authorization-codes.test.ts', 'a code is good for ten minutes'],
    install({ AuthorizationCode }, { saveCode }) {
      AuthorizationCode.prototype.save = function () {
        return saveCode(this, Provider.ctx);
      };
    },
  },
  {
    member: 'Grant.prototype.getOIDCScopeFiltered',
    changes: 'a grant seems to hold a scope, which is an empty text',
    because:
      'no scopes exist here, and the engine refuses an approval that grants none; it tests the text for being there and splits it into nothing',
    test: ['token-endpoint.test.ts', 'a code exchange and a refresh answer the same four members'],
    install({ Grant }) {
      Grant.prototype.getOIDCScopeFiltered = () => ' ';
    },
  },
  {
    member: 'registerResponseMode',
    changes: 'a refused authorization request goes back in the query, with a page about the error',
    because:
      'the engine answers in the fragment whoever asked for a token there, without error_uri',
    test: ['authorization-endpoint.test.ts', 'with its state, our issuer and a page'],
    install(engine, { refuse }) {
      // No client can request it: `responseModeAllowed` allows `query` only.
      const mode = 'refusal';
      engine.registerResponseMode(mode, refuse);
      // The engine emits this event before it chooses the mode.
      engine.on('authorization.error', ({ oidc }: KoaContextWithOIDC) => {
        if (oidc.params) oidc.params.response_mode = mode;
      });
    },
  },
];

/** The engine with what its types omit. */
type Engine = Pick<Provider, 'on' | 'registerResponseMode'> & {
  readonly Client: { find: EngineClients['find']; readonly prototype: ClientModel };
  readonly Session: { readonly prototype: SessionHooks };
  readonly Grant: { readonly prototype: { getOIDCScopeFiltered(): string } };
  readonly AuthorizationCode: { readonly prototype: { save(this: Code): Promise<string> } };
};

type Code = InstanceType<Provider['AuthorizationCode']>;

interface ClientModel {
  redirectUriAllowed(this: EngineClient, uri: string): boolean;
  responseModeAllowed(this: EngineClient, mode: string | undefined): boolean;
}

interface SessionHooks {
  save(this: SessionModel): Promise<void>;
  resetIdentifier(this: SessionModel): void;
}
