/** What the errors of the authorization endpoint mean, for the developer of a client. */
import type { ErrorText } from './token-texts.ts';

export const authorizationErrorTexts = {
  access_denied: {
    title: 'The person said no',
    meaning:
      'The person pressed Deny or Cancel. This is an ordinary outcome and comes to your ' +
      'redirect URI with the state you sent.',
    causes: [
      {
        cause: 'The person does not want to connect now.',
        remedy: 'Say that nothing was connected and offer the button again. Do not loop.',
      },
      {
        cause: 'The person was signed in with another account than the one they meant.',
        remedy: 'Start again: the page that asks has a “Not you?” button next to the account.',
      },
    ],
  },
  unsupported_response_type: {
    title: 'Only response_type=code is answered',
    meaning: 'Tokens are never put into a URL: the implicit and hybrid flows do not exist here.',
    causes: [
      {
        cause: 'response_type is token, id_token, none or a combination.',
        remedy: 'Send response_type=code. Browser clients use PKCE instead of the implicit flow.',
      },
    ],
  },
  unsupported_response_mode: {
    title: 'The answer is always in the query of your redirect URI',
    meaning: 'response_mode may be left out, or be query.',
    causes: [
      {
        cause: 'response_mode is fragment, form_post or a JWT mode.',
        remedy: 'Leave the parameter out, and read code and state from the query.',
      },
    ],
  },
  invalid_redirect_uri: {
    title: 'The redirect URI is not registered',
    meaning:
      'redirect_uri is not, character by character, one that is registered for this client. ' +
      'We show this to the person and never redirect: the address may not be yours.',
    causes: [
      {
        cause: 'A trailing slash, the case, the port, or http instead of https differs.',
        remedy:
          'Copy the value from the recent problems of your client, which show sent and registered.',
      },
      {
        cause: 'Your code adds a query parameter of its own.',
        remedy: 'Keep such values under your state, and register the URI without them.',
      },
      {
        cause: 'A preview or staging host is not registered.',
        remedy: 'Register each host. Up to 20 redirect URIs are allowed, wildcards are not.',
      },
    ],
  },
  login_required: {
    title: 'Nobody is signed in',
    meaning: 'You sent prompt=none, and the person would have had to sign in.',
    causes: [
      {
        cause: 'The session ended, or the browser keeps cookies from embedded pages away.',
        remedy: 'Send the same request without prompt=none, in the top window.',
      },
    ],
  },
  consent_required: {
    title: 'The person has to approve first',
    meaning: 'You sent prompt=none, and the person would have been asked for approval.',
    causes: [
      {
        cause: 'The person never approved this client, or ended the connection.',
        remedy: 'Send the same request without prompt=none, after the person pressed a button.',
      },
      {
        cause: 'The name or a redirect host of the client changed since.',
        remedy: 'The same: each person is asked once more after such a change.',
      },
      {
        cause: 'The client is public.',
        remedy: 'Public clients cannot prove who they are, so the person is asked every time.',
      },
    ],
  },
  interaction_required: {
    title: 'The person has to act on our page',
    meaning: 'You sent prompt=none, and a page would have had to be shown.',
    causes: [
      {
        cause: 'Something other than sign-in or approval needs the person.',
        remedy: 'Send the same request without prompt=none, in the top window.',
      },
    ],
  },
  request_not_supported: {
    title: 'Request objects are not read',
    meaning: 'The request parameter (a JWT that holds the authorization request) is refused.',
    causes: [
      {
        cause: 'Your library is configured for signed authorization requests (JAR).',
        remedy: 'Switch it off and send the parameters in the query.',
      },
    ],
  },
  request_uri_not_supported: {
    title: 'Requests are not fetched from elsewhere',
    meaning: 'The request_uri parameter is refused, and we never call the address it names.',
    causes: [
      {
        cause: 'Your library is configured for pushed or referenced authorization requests (PAR).',
        remedy: 'Switch it off and send the parameters in the query.',
      },
    ],
  },
  registration_not_supported: {
    title: 'Clients do not register within a request',
    meaning: 'The registration parameter of self-issued OpenID providers is refused.',
    causes: [
      {
        cause: 'Your library sends client metadata with the authorization request.',
        remedy: 'Register the client on the profile page and send its client_id.',
      },
    ],
  },
} satisfies Record<string, ErrorText>;
