/** `/openapi.json`: describes the endpoints for clients and APIs as an OpenAPI 3.1 document. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import packageFile from '../../package.json' with { type: 'json' };
import { answersOf } from './error-reference.ts';

interface OpenApiDocument {
  readonly info: object;
  readonly servers?: readonly { readonly url: string }[];
  readonly externalDocs?: { readonly url: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Record<string, object> }>>>>;
}

const file = new URL('../../views/openapi.yaml', import.meta.url);

/** The cached content of the YAML file as JSON: parsing the YAML would slow down each reload of the settings. */
let fileInJson: string | undefined;

const HEADERS = {
  'Retry-After': { description: 'In seconds.', schema: { type: 'integer' } },
};

/** Returns the OpenAPI document with the URL of the service and the errors of each endpoint. */
export function openApiDocument(issuer: string): OpenApiDocument {
  fileInJson ??= JSON.stringify(parse(readFileSync(file, 'utf8')));
  const document: OpenApiDocument = JSON.parse(fileInJson);
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const { responses } of Object.values(methods)) {
      for (const [status, errors] of answersOf(path)) responses[status] ??= response(errors);
    }
  }
  return {
    ...document,
    info: { ...document.info, version: packageFile.version },
    servers: [{ url: issuer }],
    externalDocs: { url: `${issuer}/errors` },
  };
}

function response(errors: readonly { readonly code: string; readonly title: string }[]) {
  const enumerated = { properties: { error: { enum: errors.map(({ code }) => code) } } };
  const schema = { allOf: [{ $ref: '#/components/schemas/Error' }, enumerated] };
  return {
    description: errors.map(({ code, title }) => `${code}: ${title}`).join('. '),
    headers: HEADERS,
    content: { 'application/json': { schema } },
  };
}
