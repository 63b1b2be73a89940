/** The flow with bash and curl. Bash cannot listen: Perl does, which comes along nearly everywhere. */
import {
  inShell,
  listeningOf,
  PATHS,
  type ProgramValues,
  percentEncoded,
  preparation,
  requestOf,
} from './values.ts';

export function curlProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { host, port, path } = listeningOf(values);
  return `\
#!/usr/bin/env bash
# Needs curl (7.76 or later), openssl and perl. Save this as try.sh.
${preparation('#')}
set -euo pipefail
: "\${CLIENT_SECRET:?is not set}"
issuer=${inShell(issuer)}
client_id=${inShell(clientId)}
redirect_uri=${inShell(percentEncoded(redirectUri))} # percent-encoded

failed() {
  echo "Failed: $*" >&2
  exit 1
}

# A secret of this run alone, and its hash (PKCE); and a state, to know the answer by.
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
verifier=$(openssl rand 32 | base64url)
challenge=$(printf %s "$verifier" | openssl dgst -sha256 -binary | base64url)
state=$(openssl rand 16 | base64url)
address="$issuer${PATHS.authorize}?response_type=code&client_id=$client_id&redirect_uri=$redirect_uri&state=$state&code_challenge=$challenge&code_challenge_method=S256"

# Waits at the redirect URI, and prints the query with which the browser comes there.
answer=$(perl -MIO::Socket::IP -e '
  my ($host, $port, $path, $address) = @ARGV;
  my $server = IO::Socket::IP->new(LocalHost => $host, LocalPort => $port, Listen => 9, ReuseAddr => 1)
    or die "cannot listen at $host, port $port: $@\\n";
  print STDERR "Open this address in a browser, sign in and approve:\\n$address\\n";
  while (my $browser = $server->accept) {
    # Browsers open connections that they may need later.
    vec(my $waiting = "", fileno($browser), 1) = 1;
    select($waiting, undef, undef, 2) or next;
    my ($asked, $query) = (<$browser> // "") =~ /^GET ([^ ?]*)\\??(\\S*)/ or next;
    while (my $line = <$browser>) { last if $line =~ /^\\r?\\n/ }
    my ($status, $says) = $asked eq $path
      ? ("200 OK", "You may close this window, and go back to the program.") : ("404 Not Found", "");
    print $browser "HTTP/1.1 $status\\r\\nContent-Type: text/plain\\r\\nConnection: close\\r\\n\\r\\n$says\\n";
    close $browser;
    if ($asked eq $path) { print $query; last }
  }
' ${inShell(host)} ${port} ${inShell(path)} "$address")
[[ "&$answer&" == *"&state=$state&"* ]] || failed 'that is not the answer to this request'
[[ "&$answer&" == *${inShell(`&iss=${percentEncoded(issuer)}&`)}* ]] || failed 'that is the answer of another service'
[[ "&$answer" =~ \\&code=([A-Za-z0-9_-]+) ]] || failed "no code, but $answer"
code=\${BASH_REMATCH[1]}

# Not on the command line of curl, which every local user may read.
ask() { # path, then parameters
  local path=$1
  shift
  curl -sS --fail-with-body "$issuer$path" --config <(
    printf 'user = "%s:%s"\\n' "$client_id" "$CLIENT_SECRET"
    printf 'data = "%s"\\n' "$@"
  )
}
token_in() { grep -o "\\"$1\\":\\"[^\\"]*\\"" <<<"$2" | cut -d '"' -f 4; }

tokens=$(ask ${PATHS.token} grant_type=authorization_code "code=$code" \\
  "redirect_uri=$redirect_uri" "code_verifier=$verifier") || failed "$tokens"
echo "Exchanged: $tokens"

tokens=$(ask ${PATHS.token} grant_type=refresh_token \\
  "refresh_token=$(token_in refresh_token "$tokens")") || failed "$tokens"
echo "Refreshed, and the refresh token is a new one: $tokens"
${api ? apiCall(api) : ''}
if [[ \${KEEP_TOKENS:-} ]]; then
  echo 'Kept: the last tokens above are good.'
else
  ask ${PATHS.revoke} "token=$(token_in refresh_token "$tokens")" || failed 'the tokens are not revoked'
  echo 'Revoked: none of these tokens is good any more.'
fi
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
answer=$(curl -sS --fail-with-body ${inShell(api.graphqlUrl)} \\
  -H 'Content-Type: application/json' --data ${inShell(requestOf(api))} \\
  --config <(printf 'header = "Authorization: Bearer %s"\\n' "$(token_in access_token "$tokens")")) ||
  failed "$answer"
echo "The API answered: $answer"
`;
