/** Names that nodes of two versions exchange during an upgrade, or that are stored. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { ACTIONS, CAUSES } from '../src/accounts/activity/activity-words.ts';
import { startWithUpstream } from './sign-in-upstream/service.ts';
import { scrape } from './support/metrics.ts';
import { exchangeCode } from './support/oauth.ts';

const KEEP =
  'Old and new nodes exchange these names, and stored data has them: keep the name. ' +
  'Add a new one here. If only the code around a name changed, adapt how this test finds it';
const ROOT = path.join(import.meta.dirname, '..');
const textOf = (folder: string, ending: string): string =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(path.join(ROOT, folder, name), 'utf8'))
    .join('\n');
const sources = textOf('src', '.ts');

/** Returns the first group of each match in the source. */
const inSources = (pattern: RegExp, text = sources): string[] =>
  [...text.matchAll(pattern)].map(([, name = '']) => name.replace(/\$\{[^}]*\}/g, '…'));
/** Returns the string literals of a union type. */
const union = (name: string): string[] =>
  inSources(/'([^']+)'/g, new RegExp(`type ${name} =([^;]+);`).exec(sources)?.[1]);

/** For each kind, the names that the source or the program uses, and the names that it must use. */
const NAMES: readonly (readonly [what: string, used: readonly string[], frozen: string])[] = [
  [
    'purposes of seals',
    inSources(/createSeals\(\s*'([^']+)'/g),
    'client-test, consent, device, form, notice, passkey, sign-out',
  ],
  ['other texts in a MAC or a hash', inSources(/\.update\(\s*[`']([^`']+)[`']/g), 'gatehouse-key:…, reload, …:…'],
  [
    'names of cookies, and prefixes of values',
    [...inSources(/(?:ownCookie|cookieName)\(\s*[\w.]+,\s*'(\w+)'/g), ...inSources(/'(?:__\w+-)?gate_([a-z_]+)'/g)],
    `ac_, ask_who, at_, browser, ci_, cs_, device, form, interaction, key_, language, link, mt_, notice,
      passkey, resume, rt_, session, upstream, waiting`,
  ],
  [
    'limits',
    inSources(/(?:create|hourlyLimit|AttemptLimit)\(\s*(?:\{\s*name: )?'([a-z_]+)'/g),
    `approval_requests, client_address, client_failures_address, client_problem_mails,
      forgot_account, forgot_address, kept_forms,
      passkey_failures, sign_in_account, sign_in_account_address, sign_in_address, sign_in_device,
      upstream_logouts, upstream_sign_ins, waiting_sign_ins`,
  ],
  [
    'NOTIFY channels, and the table of migrations',
    inSources(/ = '(gatehouse_\w+)';/g),
    'gatehouse_doctor, gatehouse_messages, gatehouse_migrations, gatehouse_named_changes',
  ],
  [
    'topics of changes',
    union('ChangeTopic'),
    `access, accounts, api-key-ids, api-keys, authorizations, bars, clients, connections,
      everything, organizations`,
  ],
  ['record kinds', union('RecordKind'), 'interaction, machine_token, session, shown_once'],
  [
    'outcomes of the Redis scripts',
    inSources(/return \{ '([a-z_]+)'/g),
    'expired, issued, missing, replayed, retried, too_old',
  ],
  [
    'actions',
    ACTIONS,
    `account_added, account_changed, account_deleted, account_resumed, account_suspended,
      api_key_added, api_key_revoked, client_added, client_admitted, client_barred, client_changed,
      client_deleted, client_resumed, client_secret_added, client_secret_removed,
      client_suspended, client_tested, client_tokens_revoked, client_transferred, connected,
      disconnected, doctor_ran, everything_revoked, identity_linked, identity_unlinked,
      member_removed, membership_removed, membership_set, organization_added,
      organization_changed, organization_removed, passkey_added, passkey_refused,
      passkey_removed, password_changed, password_link_made, sign_in_failed, sign_in_refused,
      signed_in, signed_out_elsewhere, signed_out_everywhere, signed_out_upstream,
      tokens_revoked, warehouse_added, warehouse_changed, warehouse_removed`,
  ],
  [
    'causes of an end',
    Object.keys(CAUSES),
    `client_deleted, client_revoked, code_replayed, leaked, operator_revoked, person_disconnected,
      refresh_token_replayed, time_limit`,
  ],
  [
    'form fields',
    inSources(/ name="(\w+)"/g, textOf('views', '.ejs')),
    `add_place, api_keys, approve, client_secret, clients, confirm_name, confirm_with, creation_key, current_password,
      decision,
      drawn_at, drawn_from, email, end_connections, expires_in_days, forget, form_token, from, keep_tokens, language, limit_last_day, limit_places,
      limit_rights,
      link_with, made_passkey, mail, more, name, new_password, only, order, passkey, password, place, q,
      redirect_uri, redirect_uris, remove, sentence, shown, token, viewport, warehouse`,
  ],
];

function expectFrozen(used: readonly string[], frozen: string): void {
  expect([...new Set(used)].sort().join(', '), KEEP).to.equal(frozen.replace(/\s+/g, ' '));
}

describe('frozen names', () => {
  const on = startWithUpstream();

  for (const [what, used, frozen] of NAMES) {
    it(`these names do not change: ${what}`, () => expectFrozen(used, frozen));
  }

  it('the names of metrics and of their labels do not change', async () => {
    const { database, issuer } = on.service;
    const changes = JSON.stringify({ account: { added: 3 } });
    await database.query('INSERT INTO last_import VALUES (true, now(), $1)', [changes]);
    await exchangeCode(issuer, on.seeded.clients.confidential, 'no code');
    const samples = await scrape(on.service);
    expect(samples.get('gatehouse_import_last_changes{type="account",change="added"}')).to.equal(3);
    const names = [...samples.keys()]
      .filter((sample) => /^gatehouse_(?!.*_(bucket|sum))/.test(sample))
      .map((sample) => sample.replace(/="[^"]*"/g, ''));
    const frozen = `gatehouse_audit_lag_seconds, gatehouse_authorizations_total{outcome}, gatehouse_build_info{version,node},
      gatehouse_change_feed_live, gatehouse_cleaning_failures_total{task},
      gatehouse_cleaning_removed_total{task},
      gatehouse_client_secrets_refused_total{reason},
      gatehouse_clock_offset_seconds{store},
      gatehouse_config_last_reload_success_timestamp_seconds,
      gatehouse_config_last_reload_successful, gatehouse_database_connections{state},
      gatehouse_database_waiting,
      gatehouse_http_request_duration_seconds_count{route,method},
      gatehouse_http_requests_total{route,method,status},
      gatehouse_import_last_changes{type,change},
      gatehouse_import_last_success_timestamp_seconds, gatehouse_introspections_total{active},
      gatehouse_leaked_values_total{kind}, gatehouse_log_lines_dropped_total,
      gatehouse_mails_total{outcome}, gatehouse_node_holes, gatehouse_passkeys_total{outcome},
      gatehouse_people_signed_in_total{method}, gatehouse_refresh_retries_total,
      gatehouse_replays_total{kind}, gatehouse_sign_ins_total{outcome},
      gatehouse_start_time_seconds, gatehouse_store_errors_total{store,operation},
      gatehouse_store_operation_duration_seconds_count{store,operation},
      gatehouse_store_up{store}, gatehouse_token_requests_refused_total{grant_type,error},
      gatehouse_tokens_issued_total{grant_type}, gatehouse_unexpected_errors_total,
      gatehouse_upstream_sign_ins_total{provider,outcome}`;
    expectFrozen(names, frozen);
  });
});
