/** Serves stylesheet, script and icons from memory, under URLs with a hash of their content. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Context } from 'koa';
import { nearestReadable } from '../config/colour.ts';
import { get, type Route } from '../pages/routes.ts';

interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly hash: string;
  /** Absent for images, which are compressed already. */
  readonly encoded?: { readonly br: Buffer; readonly gzip: Buffer };
}

/** All files that can be served, by path. No file name is made from a request. */
export type Assets = Map<string, Asset>;

const directory = new URL('../../views/assets/', import.meta.url);

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  // The header states the character encoding, so a declaration in the file is ignored.
  '.svg': 'image/svg+xml; charset=utf-8',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
};

const assets: Assets = new Map();

/** The URL of a file changes with its content. */
export const assetUrls = {
  stylesheet: publish(assets, 'gatehouse.css'),
  script: publish(assets, 'gatehouse.js'),
  icon: publish(assets, 'favicon.svg'),
};
const stylesheet = assets.get(assetUrls.stylesheet) as Asset;

/**
 * Adds the stylesheet with this colour. Each node serves each colour: while the settings of nodes differ, a page of
 * another node needs the stylesheet of that node.
 * @returns the URL
 */
export function publishStylesheet(files: Assets, colour: string | undefined): string {
  if (colour === undefined) return assetUrls.stylesheet;
  const url = `${assetUrls.stylesheet}?colour=${colour.slice(1).toLowerCase()}`;
  files.set(url, compressed(coloured(stylesheet, colour.toLowerCase())));
  return url;
}

/** The step for `GET` and `HEAD /assets/:name`. For unknown names it does nothing, so that Koa answers 404. */
export const createServeAsset = (own: Assets) =>
  function serveAsset(ctx: Context): void {
    const asset = own.get(ctx.url) ?? assets.get(ctx.path) ?? own.get(ctx.path);
    const colour = `#${ctx.query.colour}`;
    // Send a stylesheet with a requested colour uncompressed, because callers could request every colour.
    const isOther = asset === stylesheet && /^#[0-9a-f]{6}$/.test(colour);
    const sent = isOther ? coloured(asset, colour) : asset;
    if (sent) send(ctx, sent, 'public, max-age=31536000, immutable');
  };

/** Returns the routes of icons that programs request without a page. @param own replaces the product's icon */
export const iconRoutes = (own?: Asset): Route[] =>
  ['favicon.ico', 'apple-touch-icon.png'].map((name) => {
    const icon = own ?? assetOf(name);
    return get(`/${name}`, function serveIcon(ctx) {
      send(ctx, icon, 'public, max-age=86400');
    });
  });

function send(ctx: Context, asset: Asset, cacheControl: string): void {
  const { body, type, hash, encoded } = asset;
  // BREACH: compress only files. The length of a compressed page could reveal its form token.
  const encoding = encoded && (['br', 'gzip'] as const).find((name) => ctx.acceptsEncodings(name));
  ctx.status = 200;
  // RFC 9110 §8.8.3.3: each encoding has its own ETag.
  ctx.etag = encoding ? `${hash}-${encoding}` : hash;
  if (encoded) ctx.vary('Accept-Encoding');
  ctx.set('Cache-Control', cacheControl);
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (encoding) ctx.set('Content-Encoding', encoding);
  ctx.type = type;
  ctx.body = encoding ? encoded[encoding] : body;
}

function coloured({ body, type, hash }: Asset, colour: string): Asset {
  const [light, dark] = [nearestReadable(colour, 'light'), nearestReadable(colour, 'dark')];
  const style = Buffer.from(`:root { --brand: ${light}; --brand-dark: ${dark}; }\n`);
  return { body: Buffer.concat([body, style]), type, hash: hash + colour };
}

function compressed(asset: Asset): Asset {
  const { body } = asset;
  return { ...asset, encoded: { br: brotliCompressSync(body), gzip: gzipSync(body) } };
}

function assetOf(name: string, body: Buffer = readFileSync(new URL(name, directory))): Asset {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 16);
  return { body, type: types[extname(name)] ?? 'application/octet-stream', hash };
}

/** Adds a file of `views/assets`. If `body` is given, it replaces the content of the file. @returns the URL */
export function publish(files: Assets, name: string, body?: Buffer): string {
  const plain = assetOf(name, body);
  const asset = /text|svg/.test(plain.type) ? compressed(plain) : plain;
  const extension = extname(name);
  const url = `/assets/${name.slice(0, -extension.length)}.${asset.hash}${extension}`;
  files.set(url, asset);
  return url;
}
