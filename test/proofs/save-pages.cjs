/**
 * For `mocha --require`: keeps each page that a test fetches in the folder SAVED_PAGES, once for each way it is built,
 * and the content security policy of each answer in a file beside it.
 */
const { createHash } = require('node:crypto');
const { appendFileSync, writeFileSync } = require('node:fs');
const path = require('node:path');

const { fetch } = globalThis;
globalThis.fetch = async (...request) => {
  const response = await fetch(...request);
  const policy = response.headers.get('content-security-policy');
  if (policy) appendFileSync(`${process.env.SAVED_PAGES}.policies`, `${policy}\n`);
  // The text of a redirect is no page.
  const isPage = response.headers.get('content-type')?.startsWith('text/html') && !response.headers.has('location');
  if (!isPage) return response;
  const text = await response.clone().text();
  // Names of elements and classes say how a page is built; values and texts do not.
  const shape = [...text.matchAll(/<[a-z0-9]+|\b(class|type|aria-[a-z]+|role)="[^"]*"/g)].join(' ');
  const name = `${createHash('sha256').update(shape).digest('hex').slice(0, 16)}.html`;
  if (text !== '') writeFileSync(path.join(process.env.SAVED_PAGES, name), text);
  return response;
};
