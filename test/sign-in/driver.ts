/** Drives a real service through the events of the table of sign-in (table.ts). */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { NEW, optionsFor, SECURITY } from '../pages/passkeys/soft-passkey.ts';
import { startWithUpstream } from '../sign-in-upstream/service.ts';
import { makePasskey, type SoftPasskey } from '../support/authenticator.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import type { Page } from '../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../support/seed.ts';
import type { Overrides, Start } from '../support/service.ts';
import type { Traveller } from '../support/upstream.ts';
import type { AT_ONCE, Event, Held, Method, Row, State } from './table.ts';

const STRONGER = '/profile/stronger-sign-in';
export const GRACE_SECONDS = 1_800;
export const IDLE_SECONDS = 3_600;
export const ABSOLUTE_SECONDS = 7_200;
const NEW_PASSWORDS = ['eight blue pallets, stacked', 'nine grey conveyors, moving'] as const;
const IDS = { strong: 'platform', weak: 'partner' } as const;
type Provider = keyof typeof IDS;

/** A user and the browser of a row. */
export interface Actor {
  /** With the present password. */
  who: SeededPerson;
  browser: Traveller;
  /** The latest one that was added. */
  passkey: SoftPasskey | undefined;
}

export function driver(start: Start) {
  let reloaded: Overrides = {};
  const on = startWithUpstream({
    start: (options) => start({ ...options, reloaded: () => reloaded }),
    hasSecond: true,
    second: { isStrong: false },
    settings: {
      sessions: { idleSeconds: IDLE_SECONDS, absoluteSeconds: ABSOLUTE_SECONDS },
      signIn: { require: 'passkey-or-upstream', requireGraceSeconds: GRACE_SECONDS },
      // Refused sign-ins of suspended users count, too.
      limits: { signInFailures: 1_000, signInFailuresPerAddress: 1_000, signInFailuresPerAccount: 1_000 },
    },
  });

  const providerOf = (provider: Provider) => (provider === 'strong' ? on.upstream : on.second);
  const subjectOf = ({ accountId }: SeededPerson, provider: Provider): string => `${provider} of ${accountId}`;
  const fieldsOf = ({ forms }: Page, action: (path: string) => boolean = () => true) =>
    Object.fromEntries(forms.find((form) => form.names.has('form_token') && action(form.action))?.values ?? []);

  /** Makes the provider sign this user in, at this moment. */
  function presentAt(provider: Provider, who: SeededPerson): void {
    const sub = subjectOf(who, provider);
    providerOf(provider).account = { sub };
    // RFC 7519 §2: a time may have a fraction.
    const fraction = provider === 'weak' ? 0.5 : 0;
    providerOf(provider).lie = { claims: (sent) => ({ ...sent, auth_time: Number(sent.iat) - fraction }) };
  }

  async function addLink(who: SeededPerson, held: Exclude<Held, 'passkey'>): Promise<void> {
    const provider = held === 'unused' ? 'strong' : held;
    const now = new Date(on.clock.clock());
    const { issuer } = providerOf(provider);
    await on.service.database.query(
      `INSERT INTO account_identities (issuer, subject, account_id, created_at, last_used_at)
        VALUES ($1, $2, $3, $4, $5)`,
      [issuer, subjectOf(who, provider), who.accountId, now, held === 'unused' ? null : now],
    );
  }

  const signIn = (browser: Traveller, { email, password }: SeededPerson) => browser.signIn({ email, password });

  /** Opens the page to add a passkey. @returns what sends it, unless the page does not offer that. */
  async function readyToAdd({ browser }: Actor) {
    const page = await browser.get(NEW);
    if (!page.forms.some(({ names }) => names.has('made_passkey'))) return { page, send: async () => page };
    const { passkey, made } = makePasskey(on.service.issuer, await optionsFor(browser, 'add'));
    const send = () => browser.submit(page, { name: 'Laptop', made_passkey: made });
    return { page, passkey, send };
  }

  /** Begins to link a provider. @returns what comes back with the answer. */
  async function readyToLink({ who, browser }: Actor, provider: Provider) {
    presentAt(provider, who);
    const page = await browser.open(SECURITY);
    const there = await browser.post(`${SECURITY}/ways`, { ...fieldsOf(page), link_with: IDS[provider] });
    if (there.location?.origin !== providerOf(provider).issuer) return { send: () => browser.follow(there) };
    const callback = await browser.untilCallback(there);
    return { send: async () => browser.follow(await browser.get(callback)) };
  }

  /** Begins a visit to `strong` with a form of this page, and answers there as this user. @returns the callback. */
  async function callbackOf({ browser, who }: Actor, path: string, field: string, as = who): Promise<URL> {
    presentAt('strong', as);
    return browser.untilCallback(await browser.submit(await browser.get(path), { [field]: IDS.strong }));
  }

  async function given({ held = [], required = 'never', from }: Partial<Pick<Row, 'held' | 'required' | 'from'>>) {
    const who = await addPerson(on.service, 'Pat Person');
    for (const one of held) if (one !== 'passkey') await addLink(who, one);
    const other = on.traveller();
    let passkey: SoftPasskey | undefined;
    if (held.includes('passkey')) {
      await signIn(other, who);
      const ready = await readyToAdd({ who, browser: other, passkey: undefined });
      await ready.send();
      passkey = ready.passkey;
    }
    const actor: Actor = { who, browser: on.traveller(), passkey };
    if (from) await act(actor, from);
    if (required !== 'never') await act(actor, 'get a role');
    if (required === 'now') await act(actor, 'end of the grace period');
    return actor;
  }

  /** Answers a page that asks for a sign-in, or for a confirmation. */
  async function prove({ who, browser, passkey }: Actor, page: Page, by: Method, confirms = false): Promise<Page> {
    if (by === 'password') {
      const { email, password } = who;
      const fields = confirms ? { current_password: password } : { email, password };
      return browser.follow(await browser.submit(page, fields));
    }
    if (by === 'passkey') {
      const options = await optionsFor(browser, confirms ? 'confirm' : 'sign-in');
      return browser.follow(await browser.submit(page, { passkey: passkey?.answer(options) ?? '' }));
    }
    presentAt(by, who);
    return browser.arrive(await browser.submit(page, { sign_in_with: IDS[by] }));
  }

  const clientUrl = (prompt: string): URL =>
    authorizationUrl(on.service.issuer, on.seeded.clients.otherConfidential, { prompt });
  const clientPage = ({ browser }: Actor, prompt: string): Promise<Page> => browser.open(clientUrl(prompt));

  /** Opens the page with the forms that end sessions. @returns what sends them, and then returns the page */
  async function readyToEndSessions(browser: Traveller, which: 'others' | 'all'): Promise<() => Promise<Page>> {
    const page = await browser.get(SECURITY);
    const isAction = (path: string) =>
      which === 'all' ? path.endsWith('/sign-out-everywhere') : path.includes(`${SECURITY}/sessions/`);
    const forms = page.forms.filter(({ action }) => isAction(action));
    expect(forms, 'forms that end sessions').not.to.deep.equal([]);
    return async () => {
      for (const { action, values } of forms) await browser.post(action, Object.fromEntries(values));
      return page;
    };
  }

  const endSessions = async (browser: Traveller, which: 'others' | 'all'): Promise<Page> =>
    (await readyToEndSessions(browser, which))();

  /** @returns another password than the present one, which becomes that of the actor. */
  function newPasswordOf(actor: Actor): string {
    const [first, second] = NEW_PASSWORDS;
    const password = actor.who.password === first ? second : first;
    actor.who = { ...actor.who, password };
    return password;
  }

  async function useLink(actor: Actor, purpose: 'invitation' | 'forgotten'): Promise<Page> {
    const { browser } = actor;
    const page = await browser.open(await passwordLink(on.service, actor.who, purpose));
    return browser.follow(await browser.submit(page, { new_password: newPasswordOf(actor) }));
  }

  /** Does what comes after the word `after` in an event. */
  async function meanwhile(actor: Actor, event: string): Promise<void> {
    const { who, browser } = actor;
    if (event.endsWith('all sessions')) return void (await act(actor, 'sign out everywhere in another browser'));
    await act(actor, 'sign out here');
    if (event.endsWith('sign-in')) await signIn(browser, who);
    if (event.endsWith('another user')) await signIn(browser, on.seeded.person);
  }

  /** Reloads the service with these settings. */
  async function reload({ isRequired, isWeakStrong }: { isRequired: boolean; isWeakStrong: boolean }): Promise<void> {
    const { signIn } = on.service.settings;
    const require = isRequired ? 'passkey-or-upstream' : 'off';
    const providers = signIn.providers.map((provider) =>
      provider.id === IDS.weak ? { ...provider, isStrong: isWeakStrong } : provider,
    );
    reloaded = { signIn: { ...signIn, require, providers } };
    await on.service.reload();
  }

  function refused(page: Page): Page {
    expect(page.status, page.html).to.equal(403);
    return page;
  }

  async function act(actor: Actor, event: Event): Promise<Page | undefined> {
    const { who, browser } = actor;
    const { accountId } = who;
    const [verb = '', by = ''] = event.split(/ (?:by|at|for|link) /);
    switch (event) {
      case 'password':
      case 'passkey':
      case 'strong':
      case 'weak':
        return prove(actor, await browser.get('/login'), event);
      case 'password for a client':
      case 'passkey for a client':
      case 'strong for a client':
      case 'weak for a client':
        return prove(actor, await clientPage(actor, 'login consent'), verb as Method);
      case 'confirm by password':
      case 'confirm by passkey':
      case 'confirm by strong':
      case 'confirm by weak':
        return prove(actor, await browser.get(NEW), by as Method, true);
      case 'add passkey': {
        const { passkey = actor.passkey, send } = await readyToAdd(actor);
        actor.passkey = passkey;
        return send();
      }
      case 'add passkey at the end of the grace period':
      case 'link strong at the end of the grace period': {
        const { send } = await (verb.startsWith('add') ? readyToAdd(actor) : readyToLink(actor, 'strong'));
        await act(actor, 'end of the grace period');
        return send();
      }
      case 'link strong':
      case 'link weak':
        return (await readyToLink(actor, event === 'link strong' ? 'strong' : 'weak')).send();
      case 'remove passkey':
      case 'remove passkey and confirm by password': {
        const [{ id = '' } = {}] = await on.service.passkeys.of(accountId);
        const path = `${SECURITY}/passkeys/${id}/remove`;
        const page = await browser.get(path);
        if (by === 'password') on.clock.advance(601);
        const isOwn = (action: string) => action.endsWith('/remove');
        const sent = await browser.post(path, fieldsOf(page, isOwn));
        return by === 'password' ? browser.submit(sent, { current_password: who.password }) : sent;
      }
      case 'sign out here':
        return browser.post('/logout', fieldsOf(await browser.get('/logout')));
      case 'sign out elsewhere':
      case 'sign out everywhere in another browser': {
        const other = on.traveller();
        await signIn(other, who);
        return endSessions(other, event === 'sign out elsewhere' ? 'others' : 'all');
      }
      case 'remove passkey in another browser':
      case 'set a new password in another browser':
      case 'use invitation in another browser':
      case 'use forgotten in another browser': {
        const other: Actor = { ...actor, browser: on.traveller() };
        if (!event.startsWith('use ')) await signIn(other.browser, who);
        await act(other, event.replace(' in another browser', '') as Event);
        actor.who = other.who;
        return undefined;
      }
      case 'weak counts as strong':
      case 'weak counts as weak':
        return void (await reload({ isRequired: true, isWeakStrong: event.endsWith('strong') }));
      case 'sign out everywhere':
        return endSessions(browser, 'all');
      case 'set a new password': {
        const page = await browser.get(SECURITY);
        return browser.submit(page, { current_password: who.password, new_password: newPasswordOf(actor) });
      }
      case 'use invitation':
        return useLink(actor, 'invitation');
      case 'password for a client in the session of another user':
        actor.browser = (await given({ held: ['passkey'], from: 'passkey' })).browser;
        return prove(actor, await clientPage(actor, 'login consent'), 'password');
      case 'use forgotten':
        return useLink(actor, 'forgotten');
      case 'use forgotten and sign in':
        await useLink(actor, 'forgotten');
        return signIn(browser, actor.who);
      case 'finish at strong in another browser': {
        presentAt('strong', who);
        const other = on.traveller();
        const there = await other.submit(await other.get('/login'), { sign_in_with: IDS.strong });
        return browser.get(await other.untilCallback(there));
      }
      case 'finish link after a sign-in':
      case 'finish link after a sign-out': {
        const { send } = await readyToLink(actor, 'strong');
        await meanwhile(actor, event);
        return refused(await send());
      }
      case 'finish confirmation after a sign-in':
      case 'finish confirmation after a sign-in as another user': {
        on.clock.advance(601);
        const callback = await callbackOf(actor, NEW, 'sign_in_with');
        await meanwhile(actor, event);
        return refused(await browser.get(callback));
      }
      case 'finish reset after an end of all sessions': {
        const callback = await callbackOf(actor, SECURITY, 'confirm_with');
        await meanwhile(actor, event);
        return refused(await browser.get(callback));
      }
      case 'reset by strong':
        return browser.get(await callbackOf(actor, SECURITY, 'confirm_with'));
      case 'open the link of a reset after sign out here':
      case 'open the link of a reset after sign out everywhere': {
        const { location } = await browser.get(await callbackOf(actor, SECURITY, 'confirm_with'));
        await act(actor, event.replace('open the link of a reset after ', '') as Event);
        const page = await browser.open(String(location));
        expect(page.status, page.html).to.equal(410);
        return page;
      }
      case 'confirm by an unused link of another user, who then signs in': {
        const other = await addPerson(on.service, 'Other Person');
        await addLink(other, 'unused');
        on.clock.advance(601);
        refused(await browser.get(await callbackOf(actor, NEW, 'sign_in_with', other)));
        const theirs = on.traveller();
        return prove({ who: other, browser: theirs, passkey: undefined }, await theirs.get('/login'), 'strong');
      }
      case 'get a role': {
        const { id } = await on.service.organizations.add({ name: 'Storage' });
        return void (await on.service.memberships.setRole({ accountId }, id, 'owner'));
      }
      case 'end of the grace period':
        return void (await on.service.database.query(
          'UPDATE accounts SET grace_began_at = to_timestamp(0) WHERE id = $1',
          [accountId],
        ));
      case 'end of every session':
        return on.service.accounts.endEverySession(async () => {}).then(() => undefined);
      case 'suspension':
        return void (await on.service.accounts.suspend(accountId));
      case 'end of the suspension':
        return void (await on.service.accounts.resume(accountId));
      case 'idle':
        return void on.clock.advance(IDLE_SECONDS + 1);
      case 'too old':
        return void on.clock.advance(ABSOLUTE_SECONDS + 1);
      case 'ten minutes':
        return void on.clock.advance(601);
      case 'approve a client': {
        const page = await clientPage(actor, 'consent');
        if (!page.forms.some(({ names }) => names.has('decision'))) return page;
        return browser.follow(await browser.submit(page, { decision: 'approve' }));
      }
      case 'approve a client after add passkey':
      case 'approve a client after confirm by passkey':
      case 'approve a client after sign out everywhere': {
        const consent = await prove(actor, await clientPage(actor, 'login consent'), 'password');
        if (by === 'passkey') on.clock.advance(601);
        await act(actor, event.replace('approve a client after ', '') as Event);
        return browser.follow(await browser.submit(consent, { decision: 'approve' }));
      }
    }
  }

  /** Asks every place that reads, prolongs or issues something, which must agree. */
  async function stateOf(browser: Pick<Traveller, 'get' | 'post'>): Promise<State> {
    const page = await browser.get('/profile');
    const kept = await browser.post('/oauth/token/refresh', {});
    const adding = await browser.get(NEW);
    const silent = await browser.get(clientUrl('none'));
    const isOpen = page.status === 200;
    const answered = silent.location?.searchParams;
    expect(answered?.has('error') || answered?.has('code'), 'a client is answered').to.equal(true);
    expect(answered?.get('error') === 'login_required', 'a client gets a code exactly if it may act').to.equal(!isOpen);
    expect(kept.status, 'the session is prolonged exactly if it may act').to.equal(isOpen ? 200 : 401);
    if (isOpen) return page.html.includes(STRONGER) ? 'warned' : 'free';
    if (page.location?.pathname !== STRONGER) return 'nobody';
    const { html } = await browser.get(STRONGER);
    const mayAdd = html.includes(said('passkey.add'));
    expect(adding.status, 'a method is added exactly if none is there').to.equal(mayAdd ? 200 : 303);
    return mayAdd ? 'must add' : 'must use';
  }

  /** Copies the cookie of a browser, and the record of its session. */
  async function copyOf(browser: Traveller) {
    const { store } = on.service;
    const headers = { cookie: browser.cookieHeader('/') };
    const [, id = ''] = /gate_session=([^;]+)/.exec(headers.cookie) ?? [];
    const record = await store.read<{ uid: string }>('session', id);
    if (!record) throw new Error('the session is not stored');
    return {
      /** Stores the record again, as the restore of an older token store does. */
      async stateWhenPutBack(): Promise<State> {
        await store.writeSession(id, record.data.uid, record.data, record.expiresAt);
        const thief = on.traveller();
        return stateOf({
          get: (target) => thief.get(target, headers),
          post: (target, fields) => thief.post(target, fields, headers),
        });
      },
    };
  }

  const methodsOf = async ({ who: { accountId } }: Actor): Promise<number> => {
    const { passkeys, identities } = on.service;
    return (await passkeys.of(accountId)).length + (await identities.listOf(accountId)).length;
  };

  return {
    on,
    given,
    act,
    stateOf,
    methodsOf,
    endSessions,
    readyToEndSessions,
    copyOf,

    async check(row: Row): Promise<void> {
      const actor = await given(row);
      const before = await methodsOf(actor);
      let page: Page | undefined;
      for (const event of row.events) page = await act(actor, event);
      if (row.at !== undefined) expect((page?.location ?? page?.url)?.pathname, 'leads to').to.equal(row.at);
      // The entry of a failed sign-in is written in the background.
      await eventually(async () => {
        const [last] = await on.service.activity.of(actor.who.accountId, { limit: 1 });
        if (row.log !== undefined) expect(last?.action, 'the log').to.equal(row.log);
      });
      expect(await stateOf(actor.browser), 'the session').to.equal(row.becomes);
      expect(await methodsOf(actor), 'methods').to.equal(row.methods ?? before);
      if (row.rule === 27) await act(actor, 'weak counts as weak');
    },

    /** @returns the session of a cookie that was copied before this event, with the record that the store had then. */
    async copyAfter(event: Event): Promise<State> {
      const actor = await given({ held: ['passkey', 'weak'], from: 'weak' });
      on.clock.advance(601);
      const copy = await copyOf(actor.browser);
      await act(actor, event);
      return copy.stateWhenPutBack();
    },

    /** Both at the same moment: confirms with the password, and this other event. */
    async confirmDuring({ browser, who }: Actor, event: () => Promise<unknown>): Promise<void> {
      const page = await browser.get(NEW);
      await Promise.all([browser.submit(page, { current_password: who.password }), event()]);
    },

    reload,

    /** The grace period of this user begins now, and not at the next question. */
    async beginGrace({ who: { accountId } }: Actor): Promise<void> {
      await on.service.database.query(
        'UPDATE accounts SET grace_began_at = coalesce(grace_began_at, $2) WHERE id = $1',
        [accountId, new Date(on.clock.clock())],
      );
    },

    /** Adds these methods in as many browsers at the same moment. @returns the number of stored methods. */
    async addAtOnce(methods: (typeof AT_ONCE)[number]): Promise<number> {
      const first = await given({ from: 'password' });
      const browsers = [first.browser];
      while (browsers.length < methods.length) {
        const browser = on.traveller();
        await signIn(browser, first.who);
        browsers.push(browser);
      }
      await act(first, 'get a role');
      await act(first, 'end of the grace period');
      const sends: (() => Promise<Page>)[] = [];
      for (const [index, browser] of browsers.entries()) {
        const actor = { ...first, browser };
        const isPasskey = methods[index] === 'passkey';
        sends.push((await (isPasskey ? readyToAdd(actor) : readyToLink(actor, 'strong'))).send);
      }
      await Promise.all(sends.map((send) => send()));
      return methodsOf(first);
    },
  };
}
