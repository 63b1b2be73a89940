/** What partners, APIs and browsers ask of a deployment all day, at a steady rate, and what they got. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createIntrospector } from '../../src/resource-server/introspector.ts';
import { type RefreshChain, refreshChain } from '../many-nodes/refresh-chains.ts';
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { basic, clientCredentials, exchangeCode, introspect } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import type { Seed } from '../support/seed.ts';

export interface Failure {
  readonly what: string;
  /** When the request was sent, on the clock of `performance.now()`. */
  readonly begunAt: number;
  readonly isStream: boolean;
}

export interface RollingLoad {
  /** Requests that were sent, without those of streams. */
  readonly requests: number;
  readonly failures: readonly Failure[];
  readonly streamsOpened: number;
  /** The `X-Request-Id` of every answer that the token endpoint gave to this process. */
  readonly tokenAnswers: readonly string[];
  /** Sends this many requests a second from now on, however long the answers take. */
  start(requestsPerSecond: number): void;
  /** Ends the streams, and resolves when every request is answered. */
  stop(): Promise<void>;
  /** Refreshes each chain, and introspects the token of each exchange. @throws if one is not valid. */
  expectAllValid(): Promise<void>;
}

const REFRESH_CHAINS = 8;
/** A machine that is too busy sends less, instead of more and more at the same time. */
const MAX_UNDER_WAY = 50;
/** Milliseconds until a browser opens a stream again that ended. */
const STREAM_RETRY = 250;

export async function prepareLoad(issuer: string, seeded: Seed): Promise<RollingLoad> {
  const { clients } = seeded;
  const tokenAnswers: string[] = [];
  const stopWatching = watchTokenAnswers(issuer, (id) => tokenAnswers.push(id));
  const partner = partnerTokens(issuer, seeded);
  const owner = createPerson(issuer);
  await owner.signIn(seeded.other);
  const chains: RefreshChain[] = [];
  for (let number = 0; number < REFRESH_CHAINS; number += 1) {
    const { refreshToken } = await partner.tokens(clients.confidential);
    chains.push(refreshChain(issuer, clients.confidential, refreshToken));
  }
  const { accessToken } = await partner.tokens(clients.confidential);
  const api = createIntrospector({
    issuer,
    clientId: clients.resourceServer.id,
    clientSecret: clients.resourceServer.secret ?? '',
    live: true,
    // A busy machine is slower than the API's default allows.
    timeoutMs: 10_000,
    // That its stream ended is no failure: each call that is not answered is.
    onFailure: () => {},
  });

  const exchanged: string[] = [];
  const requests = requestsOf({ issuer, clients, partner, chains, accessToken, api, exchanged });
  const failures: Failure[] = [];
  const stopping = new AbortController();
  const underWay = new Set<Promise<void>>();
  const loops: Promise<void>[] = [];
  let sent = 0;
  let streamsOpened = 0;

  const record =
    (what: string, begunAt: number, isStream = false) =>
    (error: unknown) =>
      void failures.push({ what: `${what}: ${reasonOf(error)}`, begunAt, isStream });

  function send(): void {
    const [name, request] = requests[sent % requests.length] ?? ['', () => Promise.resolve()];
    sent += 1;
    const answered = request()
      .catch(record(name, performance.now()))
      .finally(() => underWay.delete(answered));
    underWay.add(answered);
  }

  async function sendSteadily(requestsPerSecond: number): Promise<void> {
    let due = 0;
    let last = performance.now();
    while (!stopping.signal.aborted) {
      const now = performance.now();
      due = Math.min(due + ((now - last) * requestsPerSecond) / 1000, MAX_UNDER_WAY);
      last = now;
      for (; due >= 1 && underWay.size < MAX_UNDER_WAY; due -= 1) send();
      await delay(5);
    }
  }

  /** Reads a stream to its end, again and again. */
  async function listen(path: string, headers: Readonly<Record<string, string>>): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      const begunAt = performance.now();
      try {
        const answer = await fetch(new URL(path, issuer), { headers, signal });
        expect(answer.status).to.equal(200);
        streamsOpened += 1;
        for await (const _ of answer.body ?? []);
      } catch (error) {
        if (!signal.aborted) record(path, begunAt, true)(error);
      }
      await delay(STREAM_RETRY, undefined, { signal }).catch(() => {});
    }
  }

  return {
    get requests() {
      return sent;
    },
    get streamsOpened() {
      return streamsOpened;
    },
    failures,
    tokenAnswers,

    start(requestsPerSecond) {
      const ofClient = `/profile/oauth-clients/${clients.confidential.id}/requests`;
      loops.push(
        sendSteadily(requestsPerSecond),
        listen('/oauth/introspect/changes', { authorization: basic(clients.resourceServer) }),
        listen(ofClient, eventSourceHeaders(owner, ofClient)),
      );
    },

    async stop() {
      stopping.abort();
      await Promise.all(loops);
      await Promise.all(underWay);
      api.close();
    },

    async expectAllValid() {
      for (const chain of chains) {
        const { length } = chain;
        await chain.next();
        expect(chain.length, 'refreshes').to.equal(length + 1);
      }
      for (const token of exchanged) expect(await partner.isActive(token)).to.equal(true);
      stopWatching();
    },
  };
}

type Request = readonly [name: string, send: () => Promise<void>];

/** One request of each kind. Each throws unless it gets the answer that it should get. */
function requestsOf(parts: {
  readonly issuer: string;
  readonly clients: Seed['clients'];
  readonly partner: PartnerTokens;
  readonly chains: readonly RefreshChain[];
  readonly accessToken: string;
  readonly api: ReturnType<typeof createIntrospector>;
  /** Receives each access token. */
  readonly exchanged: string[];
}): readonly Request[] {
  const { issuer, clients, partner, accessToken, api, exchanged } = parts;
  const idle = [...parts.chains];
  return [
    [
      'client credentials',
      async () => {
        const { status, text } = await clientCredentials(issuer, clients.machine);
        expect(status, text).to.equal(200);
      },
    ],
    [
      'introspection',
      async () => {
        const answer = await introspect(issuer, clients.resourceServer, accessToken);
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.body.active).to.equal(true);
      },
    ],
    [
      'refresh',
      async () => {
        // A client waits for the answer before it uses the token in it.
        const chain = idle.shift();
        if (!chain) return;
        const { unanswered } = chain;
        await chain.next().finally(() => idle.push(chain));
        expect(chain.unanswered, 'unanswered refreshes').to.equal(unanswered);
      },
    ],
    [
      'page',
      async () => {
        const { status, html } = await partner.browser.get('/profile');
        expect(status, html).to.equal(200);
      },
    ],
    [
      'exchange',
      async () => {
        const code = await partner.code(clients.confidential);
        const { status, body, text } = await exchangeCode(issuer, clients.confidential, code);
        expect(status, text).to.equal(200);
        exchanged.push(String(body.access_token));
      },
    ],
    [
      'call of an API',
      async () => {
        const headers = { authorization: `Bearer ${accessToken}` };
        const { refusal } = await api.identify({ headers });
        expect(refusal?.status).to.equal(undefined);
      },
    ],
  ];
}

const eventSourceHeaders = (person: Person, path: string) => ({
  accept: 'text/event-stream',
  cookie: person.cookieHeader(path),
});

/** The part of Node's `undici:request:headers` that is read here. */
interface ReceivedHeaders {
  readonly request: { readonly origin: string; readonly path: string };
  readonly response: { readonly headers: readonly Buffer[] };
}

/** Calls `onAnswer` for each answer to a `fetch` of this process. @returns what ends that. */
function watchTokenAnswers(issuer: string, onAnswer: (requestId: string) => void): () => void {
  const channel = 'undici:request:headers';
  function receive(message: unknown): void {
    const { request, response } = message as ReceivedHeaders;
    if (request.origin !== issuer || request.path !== '/oauth/token') return;
    const headers = response.headers.map(String);
    const name = headers.findIndex((header) => header.toLowerCase() === 'x-request-id');
    if (name !== -1) onAnswer(headers[name + 1] ?? '');
  }
  subscribe(channel, receive);
  return () => void unsubscribe(channel, receive);
}

const reasonOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message} (${cause.message})` : message;
};
