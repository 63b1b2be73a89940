/** Open pages, and state between two pages, that an upgrade must keep. */
import { expect } from 'chai';
import { isSecretValid, shownOn } from '../../pages/client-owner.ts';
import { fieldOf, signedIn } from '../../pages/signed-in-person.ts';
import { eventually } from '../../support/eventually.ts';
import { authorizationUrl, exchangeCode } from '../../support/oauth.ts';
import type { CarriedOver, World } from './carried-over.ts';
import { activeToken } from './values.ts';

const API_KEYS = '/profile/api-keys';
const CLIENTS = '/profile/oauth-clients';
const REDIRECT_URI = 'https://partner.example/callback';

/** A browser in which the person is signed in. */
const newBrowser = ({ issuer, person }: World) => signedIn({ issuer }, person);

export const PAGES: readonly CarriedOver[] = [
  {
    what: 'an API key',
    async start(world) {
      const { browser } = world.partner;
      const fields = { name: `Export ${world.mark}`, expires_in_days: '30' };
      const form = await browser.get(API_KEYS);
      const page = await browser.follow(await browser.submit(form, fields));
      const { secret } = shownOn(page);
      return async () => {
        const answer = await activeToken(world, secret);
        expect(answer).to.include({ token_type: 'api_key', username: world.person.email });
        expect((await browser.get(API_KEYS)).html).to.include(fields.name);
      };
    },
  },
  {
    what: 'a client registered by its owner, and the open form for another client',
    async start({ issuer, partner, mark }) {
      const { browser } = partner;
      const fields = { name: `Client ${mark}`, redirect_uris: REDIRECT_URI };
      const form = await browser.get(`${CLIENTS}/new`);
      const created = shownOn(await browser.follow(await browser.submit(form, fields)));
      const open = await browser.get(`${CLIENTS}/new`);
      return async () => {
        const client = { ...created, redirectUri: REDIRECT_URI };
        expect(await isSecretValid(issuer, client)).to.equal(true);
        const another = { ...fields, name: `Second ${mark}` };
        const sent = await browser.submit(open, another);
        // Sending the form twice creates only one client.
        const again = await browser.submit(open, another);
        const { id } = shownOn(await browser.follow(sent));
        expect(id).to.match(/^gate_ci_/);
        expect(again.location?.pathname).to.equal(sent.location?.pathname);
        expect((await browser.get(`${CLIENTS}/${id}/settings`)).html).to.include(another.name);
      };
    },
  },
  {
    what: 'a refused request in the problems of a client, and the activity log of its owner',
    async start({ issuer, partner, clients }) {
      const { browser } = partner;
      const { confidential } = clients;
      const pages = [`${CLIENTS}/${confidential.id}/problems`, '/profile/activity'] as const;
      const code = await partner.code(confidential);
      await exchangeCode(issuer, confidential, code, { redirect_uri: `${REDIRECT_URI}/other` });
      const shown = async () => {
        const [problems, activity] = [await browser.get(pages[0]), await browser.get(pages[1])];
        return [problems.html.includes('/other'), activity.html.includes('Route Planner')];
      };
      return async () => {
        await eventually(async () => expect(await shown()).to.deep.equal([true, true]));
      };
    },
  },
  {
    what: 'an open consent page',
    async start(world) {
      const { issuer, clients } = world;
      const browser = await newBrowser(world);
      const url = authorizationUrl(issuer, clients.confidential, { prompt: 'consent' });
      const page = await browser.follow(await browser.get(url));
      return async () => {
        const answer = await browser.submit(page, { decision: 'approve' });
        const { location, html } = await browser.follow(answer);
        const code = location?.searchParams.get('code') ?? '';
        expect(code, html).to.match(/^gate_ac_/);
        const { status, text } = await exchangeCode(issuer, clients.confidential, code);
        expect(status, text).to.equal(200);
      };
    },
  },
  {
    what: 'a one-time secret that was not shown yet',
    async start(world) {
      const { browser } = world.partner;
      const fields = { name: `Shown ${world.mark}`, expires_in_days: '30' };
      const { location } = await browser.submit(await browser.get(API_KEYS), fields);
      return async () => {
        const { secret } = shownOn(await browser.get(location ?? ''));
        await activeToken(world, secret);
      };
    },
  },
  {
    what: 'a notice that is shown once after a form',
    async start(world) {
      const { browser } = world.partner;
      const page = await browser.get(`${CLIENTS}/${world.clients.confidential.id}/settings`);
      const saved = await browser.submit(page, { name: fieldOf(page, 'name') });
      return async () => {
        expect((await browser.follow(saved)).html).to.include('role="status"');
      };
    },
  },
];
