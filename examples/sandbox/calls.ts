/** Records calls of the warehouse API and how each caller was identified, for display. */
import { printSchema } from 'graphql';
import type { Caller, Identified, Introspector } from '../../modules/node/src/resource-server.ts';
import { clockTime, type Html, html, htmlPage } from './html.ts';
import { SCHEMA } from './stock.ts';

export interface Call {
  readonly at: Date;
  /** The GraphQL operation, on one line. */
  operation: string;
  readonly who: string;
  readonly decidedBy: Identified['decidedBy'];
  /** Status of the refusal, if the call was refused. */
  readonly refusedWith?: number;
  /** Duration of the identification of the caller, in milliseconds. */
  readonly took: number;
  /** Present for a subscription; counts its events and records its end. */
  subscription?: Subscription;
}

export interface Subscription {
  events: number;
  end?: { readonly at: Date; readonly because: 'access' | 'left' };
}

export interface Calls {
  /** The calls, latest first. */
  readonly list: readonly Call[];
  /** Returns an introspector that also records each call. @param record receives the record. */
  recording(record: (call: Call) => void): Introspector;
}

const MAX_CALLS = 50;

export function createCalls(introspector: Introspector): Calls {
  const list: Call[] = [];
  return {
    list,
    recording: (record) => ({
      ...introspector,
      async identify(request) {
        const at = new Date();
        const began = performance.now();
        const identified = await introspector.identify(request);
        const { caller, refusal, decidedBy } = identified;
        const call: Call = {
          at,
          operation: '',
          who: caller ? nameOf(caller) : 'unidentified',
          decidedBy,
          ...(refusal && { refusedWith: refusal.status }),
          took: performance.now() - began,
        };
        list.unshift(call);
        list.length = Math.min(list.length, MAX_CALLS);
        record(call);
        return identified;
      },
    }),
  };
}

/** Returns the name to show for a caller; for a person, the email address of the account. */
function nameOf(caller: Caller): string {
  if (caller.method === 'client_credentials') return `the machine client ${caller.clientId}`;
  const person = caller.username ?? caller.subject;
  return caller.method === 'api_key' ? `${person}, with an API key` : person;
}

export function apiPage(calls: readonly Call[], stylesheet: string): string {
  const main = html`
    <h1>Who called</h1>
    <p>Gatehouse is asked about a caller once. The answer is remembered until Gatehouse says over an
      open stream that it is no longer true; for five seconds after a change every call is asked about.</p>
    <p><a class="button" href="/">Look again</a></p>
    ${calls.length === 0 ? html`<p>Nobody yet.</p>` : listed(calls)}
    <h2>What can be asked</h2>
    <p>POST GraphQL as JSON to <code>/graphql</code>, with <code>Authorization: Bearer</code> and an
      access token or API key; for a subscription also <code>Accept: text/event-stream</code>.</p>
    <details><summary>Schema</summary><pre>${printSchema(SCHEMA)}</pre></details>`;
  return htmlPage('Warehouse API', 'the GraphQL API', stylesheet, main);
}

const listed = (calls: readonly Call[]): Html => html`<div class="wide" tabindex="0" role="region"
      aria-label="Calls, the latest first"><table class="calls">
      <caption>Calls, the latest first</caption>
      <tr><th scope="col">At</th><th scope="col">Who</th><th scope="col">Decided</th><th
        scope="col">Operation</th></tr>
      ${calls.map(
        (call) => html`<tr>
        <th scope="row">${clockTime(call.at)}</th><td>${call.who}</td>
        <td>${decided(call)}</td>
        <td><code>${call.operation}</code>${call.subscription && state(call.subscription)}</td>
      </tr>`,
      )}
    </table></div>`;

const DECIDED = {
  memory: 'remembered',
  service: 'asked Gatehouse',
  request: 'by the request alone',
} as const;

function decided({ decidedBy, refusedWith, took }: Call): Html {
  const refused = refusedWith === undefined ? undefined : html`, refused with ${refusedWith}`;
  return html`<strong>${DECIDED[decidedBy]}</strong>${refused} <small>${took.toFixed(2)} ms</small>`;
}

function state({ events, end }: Subscription): Html {
  const count = events === 1 ? '1 event' : `${events} events`;
  if (!end) return html`<br>open, ${count} so far`;
  const because = end.because === 'access' ? 'access ended or changed' : 'the client left';
  return html`<br>${count}, ended at <strong>${clockTime(end.at)}</strong>: ${because}`;
}
