/** The partner app's only page: the connection, its actions, and the requests with answers. */
import { clockTime, type Html, html, htmlPage } from './html.ts';
import type { Organization, PartnerConnection, Tokens } from './partner-connection.ts';
import type { Watch } from './watch.ts';
import { type Exchange, shortened } from './wire-log.ts';

export interface PartnerAddresses {
  readonly stylesheet: string;
  readonly script: string;
  readonly issuer: string;
  readonly apiUrl: string;
}

export function partnerPage(connection: PartnerConnection, addresses: PartnerAddresses): string {
  const { notice, tokens, organizations, watch, log } = connection;
  const main = html`${notice && html`<p role="status">${notice}</p>`}
    ${tokens ? connected(tokens) : welcome(addresses)}
    ${watch && watching(watch, addresses.script)}
    ${organizations && stock(organizations)}
    ${log.exchanges.length > 0 ? wire(log.exchanges) : undefined}`;
  return htmlPage('Stock Planner', 'a partner app', addresses.stylesheet, main);
}

const welcome = ({ issuer, apiUrl }: PartnerAddresses): Html => html`
    <h1>Plan your stock</h1>
    <p>Stock Planner reads your stock from <code>${apiUrl}</code>. To let it, sign in at
      <code>${issuer}</code> and approve. Stock Planner never sees your password.</p>
    <p><a class="button" href="/connect">Connect your warehouse</a></p>`;

const connected = ({ accessToken, refreshToken, replaced, expiresAt }: Tokens): Html => html`
    <h1>Your warehouse is connected</h1>
    <dl>
      <dt>Access token</dt>
      <dd><code>${shortened(accessToken)}</code> until ${expiresAt.toLocaleTimeString('en-GB')}</dd>
      <dt>Refresh token</dt>
      <dd><code>${shortened(refreshToken)}</code></dd>
      ${replaced && html`<dt>The one before</dt><dd><code>${shortened(replaced)}</code></dd>`}
    </dl>
    <div class="steps">
      ${step('stock', 'Show my stock')}
      ${step('watch', 'Watch my stock')}
      ${step('refresh', 'Refresh the tokens')}
      ${replaced && step('retry', 'Retry the old refresh token')}
      ${step('revoke', 'Revoke')}
      <a class="button" href="/connect">Connect again</a>
    </div>
    ${
      replaced &&
      html`<p>The old refresh token still answers for a while (tokens.retry_window), with the same
      successor, in case the answer was lost. After that it counts as stolen and ends the
      authorization.</p>`
    }`;

/** Lists the messages. A script appends new ones; without JavaScript, users reload the page. */
const watching = ({ lines, isOver }: Watch, script: string): Html => html`<h2>Changes, as they come</h2>
    <div role="log" aria-label="Changes of the stock" tabindex="0" data-shown="${lines.length}">
      ${lines.map(({ at, text }) => html`<p><time>${clockTime(at)}</time> ${text}</p>`)}
    </div>
    ${isOver ? undefined : html`<script src="${script}"></script>`}
    <noscript><p><a class="button" href="/">Look again</a></p></noscript>`;

const step = (name: string, label: string): Html =>
  html`<form method="post" action="/${name}"><button>${label}</button></form>`;

function stock(organizations: readonly Organization[]): Html {
  if (organizations.length === 0) {
    return html`<h2>Stock</h2>\n    <p>The person behind this token reaches no organization now.</p>`;
  }
  return html`<h2>Stock</h2>${organizations.map(
    ({ name, role, warehouses }) => html`
    <h3>${name} <small>as ${role}</small></h3>${warehouses.map(warehouseTable)}`,
  )}`;
}

type Warehouse = Organization['warehouses'][number];

const warehouseTable = ({ id, name, rights, stock: levels }: Warehouse): Html => html`
    <table class="stock">
      <caption>${name} <small>may ${rights.join(', ')}</small></caption>
      <tr><th scope="col">Article</th><th scope="col">Count</th><th scope="col">Adjust</th></tr>
      ${(levels ?? []).map(
        ({ article, count }) => html`<tr>
        <th scope="row">${article}</th><td>${count}</td>
        <td><form method="post" action="/adjust">
          <input type="hidden" name="warehouse" value="${id}">
          <input type="hidden" name="article" value="${article}">
          <button name="by" value="-1" aria-label="One of ${article} less in ${name}">−1</button>
          <button name="by" value="1" aria-label="One of ${article} more in ${name}">+1</button>
        </form></td>
      </tr>`,
      )}
    </table>`;

/** The number of latest entries that are shown unfolded. */
const NEWEST = 2;

const wire = (exchanges: readonly Exchange[]): Html => html`
    <h2>What went over the wire <small>the latest first, tokens shortened</small></h2>
    ${exchanges.map(
      ({ title, request, answer }, index) => html`<details${index < NEWEST ? html` open` : undefined}>
      <summary>${title}</summary>
      <pre>${request}</pre>
      ${answer === undefined ? undefined : html`<pre class="answer">${answer}</pre>`}
    </details>`,
    )}`;
