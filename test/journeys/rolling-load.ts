/** Sends requests of clients, APIs and browsers at a steady rate and records the failures. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createIntrospector } from '../../modules/node/src/introspector.ts';
import { type RefreshChain, refreshChain } from '../many-nodes/refresh-chains.ts';
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { basic, clientCredentials, introspect } from '../support/oauth.ts';
import type { Credentials } from '../support/person.ts';
import type { Seed } from '../support/seed.ts';

export interface Failure {
  readonly what: string;
  /** When the request was sent, by the clock of `performance.now()`. */
  readonly begunAt: number;
  readonly failedAt: number;
}

export interface RollingLoad {
  readonly failures: readonly Failure[];
  /** The `X-Request-Id` of every answer from the token endpoint. */
  readonly tokenAnswers: readonly string[];
  /** Starts sending this many requests per second, however long the answers take. */
  start(requestsPerSecond: number): void;
  /** Ends the streams, and resolves when every request is answered. */
  stop(): Promise<void>;
  /** Refreshes each chain. @throws if one is not valid */
  expectAllValid(): Promise<void>;
}

const REFRESH_CHAINS = 8;
/** Limits parallel requests, so that a busy machine sends fewer instead of piling them up. */
const MAX_IN_PROGRESS = 50;
/** Milliseconds until an ended stream is reopened, as a browser would. */
const STREAM_RETRY_MS = 250;
/** Each refusal closes one connection that the proxy kept to a leaving node, and it opened no more than that. */
const MAX_REFUSED_STREAMS = 2 * MAX_IN_PROGRESS;

/** The parts of a `Seed` that send requests. */
interface Senders {
  readonly person: Credentials;
  readonly clients: Pick<Seed['clients'], 'confidential' | 'machine' | 'resourceServer'>;
}

export async function prepareLoad(issuer: string, seeded: Senders): Promise<RollingLoad> {
  const { clients } = seeded;
  const tokenAnswers: string[] = [];
  const stopWatching = watchTokenAnswers(issuer, (id) => tokenAnswers.push(id));
  const partner = partnerTokens(issuer, seeded);
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
    // Use a longer timeout than the API's default, because the machine may be busy.
    timeoutMs: 10_000,
    // Ignore these failures: a stream may end, and `send` itself records an unanswered call.
    onFailure: () => {},
  });

  const requests = requestsOf({ issuer, clients, partner, chains, accessToken, api });
  const failures: Failure[] = [];
  const stopping = new AbortController();
  const inProgress = new Set<Promise<void>>();
  const loops: Promise<void>[] = [];
  let sent = 0;
  let refusedStreams = 0;

  const record = (what: string, begunAt: number) => (error: unknown) =>
    void failures.push({ what: `${what}: ${reasonOf(error)}`, begunAt, failedAt: performance.now() });

  function send(): void {
    const [name, request] = requests[sent % requests.length] ?? ['', () => Promise.resolve()];
    sent += 1;
    const answered = request()
      .catch(record(name, performance.now()))
      .finally(() => inProgress.delete(answered));
    inProgress.add(answered);
  }

  async function sendSteadily(requestsPerSecond: number): Promise<void> {
    let due = 0;
    let last = performance.now();
    while (!stopping.signal.aborted) {
      const now = performance.now();
      due = Math.min(due + ((now - last) * requestsPerSecond) / 1000, MAX_IN_PROGRESS);
      last = now;
      for (; due >= 1 && inProgress.size < MAX_IN_PROGRESS; due -= 1) send();
      await delay(20);
    }
  }

  /**
   * Opens a stream. A proxy may send the request to a leaving node on a connection that it kept: the node answers
   * 503 with `Retry-After: 0` and closes that connection, and a retry at once comes to another node (docs/wire.md).
   */
  async function openStream(path: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    for (;;) {
      const answer = await fetch(new URL(path, issuer), { headers, signal: stopping.signal });
      if (answer.status !== 503 || answer.headers.get('retry-after') !== '0') return answer;
      await answer.body?.cancel();
      refusedStreams += 1;
      expect(refusedStreams, 'refusals of leaving nodes').to.be.at.most(MAX_REFUSED_STREAMS);
    }
  }

  /** Reads a stream to its end and reopens it, until the load stops. */
  async function listen(path: string, headers: Readonly<Record<string, string>>): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      const begunAt = performance.now();
      try {
        const answer = await openStream(path, headers);
        expect(answer.status).to.equal(200);
        for await (const _ of answer.body ?? []);
      } catch (error) {
        if (!signal.aborted) record(path, begunAt)(error);
      }
      await delay(STREAM_RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }

  return {
    failures,
    tokenAnswers,

    start(requestsPerSecond) {
      loops.push(
        sendSteadily(requestsPerSecond),
        listen('/oauth/introspect/changes', { authorization: basic(clients.resourceServer) }),
      );
    },

    async stop() {
      stopping.abort();
      await Promise.all(loops);
      await Promise.all(inProgress);
      api.close();
    },

    async expectAllValid() {
      for (const chain of chains) {
        const { length } = chain;
        await chain.next();
        expect(chain.length, 'refreshes').to.equal(length + 1);
      }
      stopWatching();
    },
  };
}

type Request = readonly [name: string, send: () => Promise<void>];

/** One function per kind of request, which throws if the answer is not the expected one. */
function requestsOf(parts: {
  readonly issuer: string;
  readonly clients: Senders['clients'];
  readonly partner: PartnerTokens;
  readonly chains: readonly RefreshChain[];
  readonly accessToken: string;
  readonly api: ReturnType<typeof createIntrospector>;
}): readonly Request[] {
  const { issuer, clients, partner, accessToken, api } = parts;
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
        // A chain waits for its answer before it uses the token in it.
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
        expect(status, /<h1[^>]*>(.*?)<\/h1>/.exec(html)?.[1]).to.equal(200);
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

/** The fields of Node's `undici:request:headers` message that are read here. */
interface ReceivedHeaders {
  readonly request: { readonly origin: string; readonly path: string };
  readonly response: { readonly headers: readonly Buffer[] };
}

/** Calls `onAnswer` for each answer to a `fetch` of this process. @returns a function that unsubscribes. */
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
