/** The flow with PHP alone: its streams listen and ask. */
import {
  inPlainQuotes,
  listeningOf,
  PATHS,
  type ProgramValues,
  preparation,
  requestOf,
} from './values.ts';

export function phpProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { host, port, path } = listeningOf(values);
  const address = host.includes(':') ? `tcp://[${host}]:${port}` : `tcp://${host}:${port}`;
  return `\
<?php
// PHP 8, with its openssl extension where the addresses are https. Save this as try.php.
${preparation('//')}
declare(strict_types=1);

const ISSUER = ${inPlainQuotes(issuer)};
const CLIENT_ID = ${inPlainQuotes(clientId)};
const REDIRECT_URI = ${inPlainQuotes(redirectUri)};

function base64url(string $bytes): string
{
    return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
}

function failed(string $why): never
{
    fwrite(STDERR, "Failed: $why\\n");
    exit(1);
}

/** Waits at the redirect URI for the browser. */
function authorize(array $query): array
{
    $server = stream_socket_server(${inPlainQuotes(address)}, $code, $why) or failed("cannot listen: $why");
    echo "Open this address in a browser, sign in and approve:\\n";
    echo ISSUER . '${PATHS.authorize}?' . http_build_query($query) . "\\n";
    for (;;) {
        $browser = stream_socket_accept($server, 600) or failed('nobody came');
        // Browsers open connections that they may need later.
        stream_set_timeout($browser, 2);
        $asked = explode(' ', (string) fgets($browser))[1] ?? '';
        if ($asked === '') {
            fclose($browser);
            continue;
        }
        while (trim((string) fgets($browser)) !== '');
        [$path, $answer] = explode('?', $asked, 2) + ['', ''];
        $isAnswer = $path === ${inPlainQuotes(path)};
        $says = $isAnswer ? 'You may close this window, and go back to the program.' : '';
        $status = $isAnswer ? '200 OK' : '404 Not Found';
        fwrite($browser, "HTTP/1.1 $status\\r\\nContent-Type: text/plain\\r\\nConnection: close\\r\\n\\r\\n$says");
        fclose($browser);
        if ($isAnswer) {
            parse_str($answer, $parameters);
            return $parameters;
        }
    }
}

function send(string $url, array $headers, string $body): string
{
    $request = ['method' => 'POST', 'header' => $headers, 'content' => $body, 'ignore_errors' => true];
    $stream = fopen($url, 'r', false, stream_context_create(['http' => $request])) or failed("no answer from $url");
    $status = stream_get_meta_data($stream)['wrapper_data'][0];
    $answer = stream_get_contents($stream);
    return preg_match('/^HTTP\\S+ 200/', $status) ? $answer : failed("$status $answer");
}

/** Posts a form with the credentials of the client. */
function ask(string $path, array $form): string
{
    $credentials = base64_encode(CLIENT_ID . ':' . getenv('CLIENT_SECRET'));
    $headers = ["Authorization: Basic $credentials", 'Content-Type: application/x-www-form-urlencoded'];
    return send(ISSUER . $path, $headers, http_build_query($form));
}

getenv('CLIENT_SECRET') || failed('CLIENT_SECRET is not set');
$verifier = base64url(random_bytes(32));
$state = base64url(random_bytes(16));
$answer = authorize([
    'response_type' => 'code',
    'client_id' => CLIENT_ID,
    'redirect_uri' => REDIRECT_URI,
    'state' => $state,
    'code_challenge' => base64url(hash('sha256', $verifier, true)),
    'code_challenge_method' => 'S256',
]);
if (($answer['state'] ?? '') !== $state || ($answer['iss'] ?? '') !== ISSUER) {
    failed('that is not the answer to this request');
}
isset($answer['code']) || failed('no code, but ' . json_encode($answer));

$tokens = ask('${PATHS.token}', [
    'grant_type' => 'authorization_code',
    'code' => $answer['code'],
    'redirect_uri' => REDIRECT_URI,
    'code_verifier' => $verifier,
]);
echo "Exchanged: $tokens\\n";

$refreshToken = json_decode($tokens, true)['refresh_token'];
$tokens = ask('${PATHS.token}', ['grant_type' => 'refresh_token', 'refresh_token' => $refreshToken]);
echo "Refreshed, and the refresh token is a new one: $tokens\\n";
['access_token' => $accessToken, 'refresh_token' => $refreshToken] = json_decode($tokens, true);
${api ? apiCall(api) : ''}
if (getenv('KEEP_TOKENS')) {
    echo "Kept: the last tokens above are good.\\n";
} else {
    ask('${PATHS.revoke}', ['token' => $refreshToken]);
    echo "Revoked: none of these tokens is good any more.\\n";
}
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
$headers = ["Authorization: Bearer $accessToken", 'Content-Type: application/json'];
echo 'The API answered: ' . send(${inPlainQuotes(api.graphqlUrl)}, $headers, ${inPlainQuotes(requestOf(api))}) . "\\n";
`;
