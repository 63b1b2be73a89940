/** Metrics count events exactly, with labels whose number callers cannot increase. */
import { expect } from 'chai';
import { fileOf, line } from '../import/import-file.ts';
import { operatorFor } from '../operator/run-operator.ts';
import { counted, scrape } from '../support/metrics.ts';
import { authorizationUrl, clientCredentials, exchangeCode, introspect, postForm, refresh } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';

describe('metrics', () => {
  const start = startsOn();
  const on = startSeeded({ on: start });

  it('metrics count each event once, and no other events', async () => {
    const { issuer } = on;
    const { person: account, clients } = on.seeded;
    const { confidential, resourceServer } = clients;
    const person = createPerson(issuer);
    const wrong = { email: account.email, password: 'seven red forklifts' };
    await person.submit(await person.get('/login'), wrong);
    const url = authorizationUrl(issuer, confidential);
    const codes = [];
    for (let index = 0; index < 3; index += 1) {
      const redirect = await person.authorize(url, account);
      codes.push(redirect.searchParams.get('code') ?? '');
    }
    await exchangeCode(issuer, { ...confidential, secret: 'gate_cs_wrong' }, codes[0] ?? '');
    const [first, second, third] = await Promise.all(
      codes.map(async (code) => (await exchangeCode(issuer, confidential, code)).body),
    );

    // Refresh again within the retry window.
    const retried = String(first?.refresh_token);
    await refresh(issuer, confidential, retried);
    await refresh(issuer, confidential, retried);
    // Use the refresh token that preceded the previous one.
    const old = String(second?.refresh_token);
    const { body } = await refresh(issuer, confidential, old);
    await refresh(issuer, confidential, String(body.refresh_token));
    await refresh(issuer, confidential, old);
    // Exchange a code twice, which ends its tokens.
    await exchangeCode(issuer, confidential, codes[2] ?? '');
    await introspect(issuer, resourceServer, String(first?.access_token));
    await introspect(issuer, resourceServer, String(third?.access_token));
    await clientCredentials(issuer, clients.machine);

    const samples = await scrape(on.service);
    const of = (name: string) => counted(samples, `gatehouse_${name}`);
    expect(of('tokens_issued_total')).to.deep.equal({
      '{grant_type="authorization_code"}': 3,
      '{grant_type="refresh_token"}': 4,
      '{grant_type="client_credentials"}': 1,
    });
    expect(of('token_requests_refused_total')).to.deep.equal({
      '{grant_type="authorization_code",error="invalid_client"}': 1,
      '{grant_type="authorization_code",error="invalid_grant"}': 1,
      '{grant_type="refresh_token",error="invalid_grant"}': 1,
    });
    expect(of('refresh_retries_total')).to.deep.equal({ '': 1 });
    expect(of('replays_total')).to.deep.equal({
      '{kind="code"}': 1,
      '{kind="refresh_token"}': 1,
    });
    expect(of('client_secrets_refused_total')).to.deep.equal({ '{reason="wrong"}': 1 });
    expect(of('authorizations_total')).to.deep.equal({ '{outcome="code"}': 3 });
    expect(of('introspections_total')).to.deep.equal({
      '{active="true"}': 1,
      '{active="false"}': 1,
    });
    expect(of('sign_ins_total')).to.deep.equal({
      '{outcome="succeeded"}': 1,
      '{outcome="failed"}': 1,
    });
    const requests = of('http_requests_total');
    expect(requests['{route="/oauth/token",method="POST",status="200"}']).to.equal(8);
    expect(requests['{route="/oauth/introspect",method="POST",status="200"}']).to.equal(2);
    expect(requests['{route="/login",method="POST",status="401"}']).to.equal(1);
    const durations = of('http_request_duration_seconds_count');
    expect(durations['{route="/oauth/token",method="POST"}']).to.equal(11);
    expect(of('store_errors_total')).to.deep.equal({});
    const reads = of('store_operation_duration_seconds_count');
    expect(reads['{store="tokens",operation="rotate"}']).to.equal(5);
    expect(reads['{store="database",operation="query"}']).to.be.greaterThan(10);
  });

  it('an invented path, method or grant type does not add a time series to the metrics', async () => {
    const { issuer } = on;
    await fetch(`${issuer}/made-up/one`);
    await fetch(`${issuer}/made-up/two?code=1`);
    await fetch(`${issuer}/login`, { method: 'PROPFIND' });
    await fetch(`${issuer}/assets/made-up.css`);
    await createPerson(issuer).get('/profile/connections/made-up');
    const grant = { grant_type: 'made-up' };
    await postForm(issuer, '/oauth/token', grant, { client: on.clients.confidential });
    const samples = await scrape(on.service);
    expect([...samples.keys()].filter((key) => key.includes('made-up'))).to.deep.equal([]);
    const requests = counted(samples, 'gatehouse_http_requests_total');
    expect(requests).to.include({
      '{route="unmatched",method="GET",status="404"}': 2,
      '{route="unmatched",method="other",status="405"}': 1,
      '{route="/assets/:name",method="GET",status="404"}': 1,
      '{route="/profile/connections/:id",method="GET",status="303"}': 1,
    });
    expect(counted(samples, 'gatehouse_token_requests_refused_total')).to.include({
      '{grant_type="other",error="unsupported_grant_type"}': 1,
    });
  });

  it('metrics report the state of stores, connections, change feed and build', async () => {
    const samples = await scrape(on.service);
    expect(counted(samples, 'gatehouse_store_up')).to.deep.equal({
      '{store="database"}': 1,
      '{store="tokens"}': 1,
    });
    expect(samples.get('gatehouse_database_waiting')).to.equal(0);
    const connections = counted(samples, 'gatehouse_database_connections');
    expect(connections['{state="idle"}']).to.be.greaterThan(0);
    expect(samples.get('gatehouse_change_feed_live')).to.equal(1);
    expect(samples.get('gatehouse_start_time_seconds')).to.be.closeTo(Date.now() / 1000, 3_600);
    const [build] = Object.keys(counted(samples, 'gatehouse_build_info'));
    expect(build).to.match(/^\{version="\d+\.\d+\.\d+(?:-next)?",node="v\d/);
    expect(samples.get('nodejs_eventloop_lag_p99_seconds')).to.be.a('number');
    expect(samples.has('gatehouse_cleaning_removed_total{task="tokens"}')).to.equal(true);
  });

  it('metrics report the last successful import of another process, but neither dry runs nor failed imports', async () => {
    const time = 'gatehouse_import_last_success_timestamp_seconds';
    const run = operatorFor(on.service);
    const valid = fileOf(line.organization('O1'), line.organization('O2'));
    await run(`import ${valid} --dry-run`);
    await run(`import ${fileOf('not json')}`);
    expect((await scrape(on.service)).has(time)).to.equal(false);
    expect((await run(`import ${valid}`)).exitCode).to.equal(0);
    const first = await scrape(on.service);
    expect(first.get(time)).to.be.closeTo(Date.now() / 1000, 3_600);
    await run(`import ${valid}`);
    const second = await scrape(on.service);
    expect(second.get(time)).to.be.above(first.get(time) ?? Number.NaN);
  });

  it('metrics continue to count after a reload, and report whether the reload succeeded', async () => {
    const outcomes: (() => { log: { level: 'warn' } })[] = [
      () => ({ log: { level: 'warn' } }),
      () => {
        throw new Error('not to be read');
      },
    ];
    const reloadable = await start({ reloaded: () => outcomes.shift()?.() ?? {} });
    await fetch(`${reloadable.issuer}/login`);
    const successful = 'gatehouse_config_last_reload_successful';
    const loginPages = '{route="/login",method="GET",status="200"}';
    await reloadable.reload();
    await fetch(`${reloadable.issuer}/login`);
    const after = await scrape(reloadable);
    expect(counted(after, 'gatehouse_http_requests_total')[loginPages]).to.equal(2);
    expect(after.get(successful)).to.equal(1);
    await reloadable.reload().catch(() => {});
    expect((await scrape(reloadable)).get(successful)).to.equal(0);
  });
});
