/** Serves stylesheet, script and icons from memory, under URLs with a hash of their content. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { Context } from 'koa';
import { nearestReadable } from '../config/colour.ts';
import { get, type Route } from '../pages/routes.ts';

/** URLs for the pages; a file gets another URL when its content changes. */
export interface AssetUrls {
  readonly stylesheet: string;
  readonly script: string;
  readonly icon: string;
}

interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly hash: string;
  /** The content security policy of an image that could contain scripts. */
  readonly policy?: string | undefined;
}

/** Everything that can be served, by path: no file name is ever made from a request. */
export type Assets = Map<string, Asset>;

const directory = new URL('../../views/assets/', import.meta.url);

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  // The header decides about the encoding, and not a declaration in the file.
  '.svg': 'image/svg+xml; charset=utf-8',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
};

const assets: Assets = new Map();

export const assetUrls: AssetUrls = {
  stylesheet: publish(assets, 'gatehouse.css'),
  script: publish(assets, 'gatehouse.js'),
  icon: publish(assets, 'favicon.svg'),
};

/**
 * Returns the URL of the stylesheet with a colour. Each node answers for each colour, so that a page
 * of another node has its stylesheet while the settings of the nodes differ.
 */
export const stylesheetWith = (colour: string | undefined): string =>
  assetUrls.stylesheet + (colour === undefined ? '' : `?colour=${colour.slice(1).toLowerCase()}`);

/** Returns what answers `GET` and `HEAD /assets/:name`; leaves unknown names to Koa's 404. */
export const createServeAsset = (logos: Assets) =>
  function serveAsset(ctx: Context): void {
    const asset = assets.get(ctx.path) ?? logos.get(ctx.path);
    const colour = `#${ctx.query.colour}`;
    const isColoured = ctx.path === assetUrls.stylesheet && /^#[0-9a-f]{6}$/.test(colour);
    const sent = asset && isColoured ? coloured(asset, colour) : asset;
    if (sent) send(ctx, sent, 'public, max-age=31536000, immutable');
  };

/** Returns the icons for which programs ask without a page. @param own replaces the product's. */
export const iconRoutes = (own?: Asset): Route[] =>
  ['favicon.ico', 'apple-touch-icon.png'].map((name) => {
    const icon = own ?? assetOf(name);
    return get(`/${name}`, function serveIcon(ctx) {
      send(ctx, icon, 'public, max-age=86400');
    });
  });

function send(ctx: Context, { body, type, hash, policy }: Asset, cacheControl: string): void {
  ctx.status = 200;
  ctx.etag = hash;
  ctx.set('Cache-Control', cacheControl);
  if (policy !== undefined) ctx.set('Content-Security-Policy', policy);
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  ctx.type = type;
  ctx.body = body;
}

/** Appends the colour for both themes. */
function coloured({ body, type, hash }: Asset, colour: string): Asset {
  const [light, dark] = [nearestReadable(colour, 'light'), nearestReadable(colour, 'dark')];
  const style = Buffer.from(`:root { --brand: ${light}; --brand-dark: ${dark}; }\n`);
  return { body: Buffer.concat([body, style]), type, hash: hash + colour };
}

function assetOf(name: string, body: Buffer = readFileSync(new URL(name, directory))): Asset {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 16);
  return { body, type: types[extname(name)] ?? 'application/octet-stream', hash };
}

/** Adds a file of `views/assets`, or this content. @returns its URL */
export function publish(files: Assets, name: string, body?: Buffer, policy?: string): string {
  const asset = { ...assetOf(name, body), policy };
  const extension = extname(name);
  const url = `/assets/${name.slice(0, -extension.length)}.${asset.hash}${extension}`;
  files.set(url, asset);
  return url;
}
