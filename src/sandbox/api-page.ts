/** The one page of the warehouse API: who called, and whether Gatehouse was asked about it. */
import { printSchema } from 'graphql';
import type { Call, Subscription } from './calls.ts';
import { clockTime, type Html, html } from './html.ts';
import { SCHEMA } from './stock.ts';

export function apiPage(calls: readonly Call[], stylesheet: string): string {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width">
  <title>Warehouse API</title>
  <link rel="stylesheet" href="${stylesheet}">
</head>
<body>
  <header>
    <p>Warehouse API</p>
    <small>the GraphQL API in the sandbox of Gatehouse</small>
  </header>
  <main>
    <h1>Who called</h1>
    <p>Gatehouse is asked about a caller once. The answer is remembered until Gatehouse says over an
      open stream that it is no longer true; for five seconds after a change every call is asked about.</p>
    <p><a class="button" href="/">Look again</a></p>
    ${calls.length === 0 ? html`<p>Nobody yet.</p>` : listed(calls)}
    <h2>What can be asked</h2>
    <p>POST GraphQL as JSON to <code>/graphql</code>, with <code>Authorization: Bearer</code> and an
      access token or API key; for a subscription also <code>Accept: text/event-stream</code>.</p>
    <details><summary>Schema</summary><pre>${printSchema(SCHEMA)}</pre></details>
  </main>
</body>
</html>`.text;
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
