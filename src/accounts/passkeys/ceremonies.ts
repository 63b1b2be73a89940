/** Asks browsers for passkeys and checks their responses (Web Authentication Level 3). */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Account } from '../account.ts';
import type { MadePasskey, Passkey, PasskeyKey } from './passkey.ts';

/** A browser's response was refused. The message is for the log, and may quote the response. */
export class AnswerRefused extends Error {
  constructor(message: string) {
    super(message.replace(/\p{C}/gu, '?').slice(0, 200));
  }
}

/** A browser's response as JSON, not verified yet. */
export interface Answer {
  readonly credentialId: string;
  /** The challenge that the browser claims to answer. */
  readonly challenge: string;
  readonly json: object;
}

const TIMEOUT_MS = 300_000;
/** ES256, EdDSA and RS256 (RFC 9053, RFC 8812), which existing authenticators support. */
const ALGORITHMS = [-7, -8, -257];
/** Base64url of a credential id, which has at most 1,023 bytes (Web Authentication §5.1). */
const CREDENTIAL_ID = /^[A-Za-z0-9_-]{1,1364}$/;
const TRANSPORT = /^[a-z-]{1,32}$/;
const MAX_TRANSPORTS = 8;

/** @param issuer responses must come from its origin; its host is the relying party id */
export function createCeremonies(issuer: string, serviceName: string) {
  const rpId = new URL(issuer).hostname;
  const expected = {
    expectedOrigin: issuer,
    expectedRPID: rpId,
    requireUserVerification: true,
  };
  const descriptors = (known: readonly Passkey[]) =>
    known.map(({ credentialId: id, transports }) => ({
      id,
      transports: [...transports],
      type: 'public-key' as const,
    }));

  return {
    /** Returns options to create a passkey, except on an authenticator that has one of the passkeys in `known`. */
    creationOptions: (
      { email, name }: Pick<Account, 'email' | 'name'>,
      { challenge, handle, known }: { challenge: string; handle: string; known: readonly Passkey[] },
    ): PublicKeyCredentialCreationOptionsJSON => ({
      rp: { id: rpId, name: serviceName },
      user: { id: handle, name: email, displayName: name },
      challenge,
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ alg, type: 'public-key' })),
      timeout: TIMEOUT_MS,
      excludeCredentials: descriptors(known),
      authenticatorSelection: {
        residentKey: 'required',
        requireResidentKey: true,
        userVerification: 'required',
      },
      attestation: 'none',
      extensions: { credProps: true },
    }),

    /** Returns options to use one of the passkeys `known`, or any of the user's passkeys if `known` is absent. */
    requestOptions: (challenge: string, known: readonly Passkey[] = []): PublicKeyCredentialRequestOptionsJSON => ({
      challenge,
      timeout: TIMEOUT_MS,
      rpId,
      allowCredentials: descriptors(known),
      userVerification: 'required',
    }),

    /** The caller must check that this service created the challenge. @throws AnswerRefused */
    checkMade: ({ json, challenge: expectedChallenge }: Answer): Promise<MadePasskey> =>
      refusing(async () => {
        const response = json as RegistrationResponseJSON;
        await refuseCertificates(response.response.attestationObject);
        const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
        const { verified, registrationInfo } = await verifyRegistrationResponse({
          ...expected,
          expectedChallenge,
          response,
          supportedAlgorithmIDs: ALGORITHMS,
        });
        if (!verified) throw new AnswerRefused('the attestation is invalid');
        const { credential, credentialDeviceType, credentialBackedUp } = registrationInfo;
        return {
          credentialId: credential.id,
          publicKey: Buffer.from(credential.publicKey).toString('base64url'),
          counter: credential.counter,
          transports: transportsIn(response.response.transports),
          maySync: credentialDeviceType === 'multiDevice',
          isSynced: credentialBackedUp,
        };
      }),

    /** @throws AnswerRefused */
    checkUsed: (
      { json, challenge: expectedChallenge }: Answer,
      { credentialId: id, publicKey, maySync, handle }: PasskeyKey,
    ): Promise<{ readonly counter: number; readonly isSynced: boolean }> =>
      refusing(async () => {
        const response = json as AuthenticationResponseJSON;
        const { userHandle } = response.response;
        // Web Authentication §7.2, step 6: the passkey must belong to this account.
        if (userHandle && userHandle !== handle) throw new AnswerRefused('the passkey belongs to another account');
        const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
        const { verified, authenticationInfo } = await verifyAuthenticationResponse({
          ...expected,
          expectedChallenge,
          response,
          // Pass 0 to skip the library's check of the counter: passkeys.ts checks the new counter when it stores it.
          credential: { id, publicKey: Buffer.from(publicKey, 'base64url'), counter: 0 },
        });
        if (!verified) throw new AnswerRefused('the signature is invalid');
        const { newCounter, credentialDeviceType, credentialBackedUp } = authenticationInfo;
        // The backup eligibility never changes (Web Authentication §7.2, steps 17 and 18).
        if ((credentialDeviceType === 'multiDevice') !== maySync) {
          throw new AnswerRefused('the backup eligibility of the passkey has changed');
        }
        return { counter: newCounter, isSynced: credentialBackedUp };
      }),
  };
}

/** @throws AnswerRefused if the response is malformed */
export function answerFrom(text: string): Answer {
  try {
    const json = JSON.parse(text) as AuthenticationResponseJSON;
    const { id: credentialId } = json;
    const clientData = Buffer.from(json.response.clientDataJSON, 'base64url').toString();
    const { challenge, crossOrigin } = JSON.parse(clientData) as Record<string, unknown>;
    if (!CREDENTIAL_ID.test(credentialId) || typeof challenge !== 'string') {
      throw new AnswerRefused('the response of the browser is invalid');
    }
    // Web Authentication §7.1, step 10 and §7.2, step 14: refuse, because our pages never show in a frame.
    if (crossOrigin === true) throw new AnswerRefused('the passkey was created in a frame of another site');
    return { credentialId, challenge, json };
  } catch (error) {
    throw asRefusal(error);
  }
}

async function refusing<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw asRefusal(error);
  }
}

const asRefusal = (error: unknown): AnswerRefused =>
  error instanceof AnswerRefused ? error : new AnswerRefused((error as Error).message);

/**
 * Allows only the attestation `none`, which we request, or `packed` signed by the passkey itself (Web Authentication
 * §6.5.4). Other attestations contain certificates with URLs, which an attacker could make us fetch.
 */
async function refuseCertificates(attestationObject: string): Promise<void> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const decoded = decodeAttestationObject(Buffer.from(attestationObject, 'base64url'));
  const format = decoded.get('fmt');
  const isOwn = format === 'packed' && decoded.get('attStmt').get('x5c') === undefined;
  if (format !== 'none' && !isOwn) throw new AnswerRefused(`an attestation (${format})`);
}

/** Returns the transports that the browser reported. They are sent to browsers unchanged when the passkey is used. */
const transportsIn = (said: unknown): string[] =>
  [said]
    .flat()
    .filter((one): one is string => typeof one === 'string' && TRANSPORT.test(one))
    .slice(0, MAX_TRANSPORTS);
