/** The settings under `api`: the GraphQL API that the tokens are for, as its developers are shown it. */
import { isLoopbackOrigin } from '../issuer.ts';
import { text } from './kinds.ts';

export const api = {
  graphql_url: text(
    {
      accepts: 'an https URL without a login or a fragment',
      example: '`https://api.example.com/graphql` (http on a loopback host only)',
    },
    isApiUrl,
  )
    .optional()
    .describe(
      'Where your GraphQL API takes requests, as partners reach it. Owners of clients are shown it, ' +
        'and their test and programs call it; this service sends it their access tokens and shows ' +
        'them its answers. Default: none.',
    ),
  example_query: text({ accepts: 'a GraphQL query', example: '`{ organizations { name } }`' })
    .default('{__typename}')
    .describe(
      'The query that the test and the programs end with: one that anybody may make, and that shows ' +
        'what your API is about.',
    ),
};

/** Access tokens go there, so nobody may read along (RFC 6750 §5.3). */
function isApiUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, origin, username, password } = new URL(url);
  const isPrivate = protocol === 'https:' || (protocol === 'http:' && isLoopbackOrigin(origin));
  return isPrivate && username === '' && password === '' && !url.includes('#');
}
