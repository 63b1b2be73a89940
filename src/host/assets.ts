/** Serves stylesheet, script and icon from memory, under URLs with a hash of their content. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { Context } from 'koa';

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
}

const directory = new URL('../../views/assets/', import.meta.url);

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

// Everything that can be served, by path: no file name is ever made from a request.
const assets = new Map<string, Asset>();

export const assetUrls: AssetUrls = {
  stylesheet: publish('gatehouse.css'),
  script: publish('gatehouse.js'),
  icon: publish('favicon.svg'),
};

/** Answers `GET` and `HEAD /assets/:name`; leaves unknown names to Koa's 404. */
export function serveAsset(ctx: Context): void {
  const asset = assets.get(ctx.path);
  if (!asset) return;

  ctx.status = 200;
  ctx.etag = asset.hash;
  ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  ctx.type = asset.type;
  ctx.body = asset.body;
}

function publish(name: string): string {
  const body = readFileSync(new URL(name, directory));
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 16);
  const extension = extname(name);
  const url = `/assets/${name.slice(0, -extension.length)}.${hash}${extension}`;
  assets.set(url, { body, type: types[extension] ?? 'application/octet-stream', hash });
  return url;
}
