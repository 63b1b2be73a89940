/** The flow with Ruby's standard library. */
import {
  inPlainQuotes,
  listeningOf,
  PATHS,
  type ProgramValues,
  preparation,
  requestOf,
} from './values.ts';

export function rubyProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { host, port, path } = listeningOf(values);
  return `\
# Save this as try.rb, and run it with: ruby try.rb
${preparation('#')}
require 'digest'
require 'json'
require 'net/http'
require 'securerandom'
require 'socket'
require 'uri'

$stdout.sync = true
ISSUER = ${inPlainQuotes(issuer)}
CLIENT_ID = ${inPlainQuotes(clientId)}
REDIRECT_URI = ${inPlainQuotes(redirectUri)}
SECRET = ENV.fetch('CLIENT_SECRET')

# Waits at the redirect URI for the browser.
def authorize(query)
  server = TCPServer.new(${inPlainQuotes(host)}, ${port})
  puts 'Open this address in a browser, sign in and approve:'
  puts "#{ISSUER}${PATHS.authorize}?#{URI.encode_www_form(query)}"
  loop do
    browser = server.accept
    # Browsers open connections that they may need later.
    asked = browser.gets.to_s.split[1] if browser.wait_readable(2)
    next browser.close if asked.nil?

    until browser.gets.to_s.strip.empty?; end
    path, answer = asked.split('?', 2)
    is_answer = path == ${inPlainQuotes(path)}
    status = is_answer ? '200 OK' : '404 Not Found'
    says = is_answer ? 'You may close this window, and go back to the program.' : ''
    browser.write "HTTP/1.1 #{status}\\r\\nContent-Type: text/plain\\r\\nConnection: close\\r\\n\\r\\n#{says}"
    browser.close
    return URI.decode_www_form(answer.to_s).to_h if is_answer
  end
end

def send_to(url, body, headers)
  response = Net::HTTP.post(URI(url), body, headers)
  abort "Failed: #{response.code} #{response.body}" unless response.code == '200'
  response.body
end

# Posts a form with the credentials of the client.
def ask(path, form)
  credentials = ["#{CLIENT_ID}:#{SECRET}"].pack('m0')
  headers = { 'Authorization' => "Basic #{credentials}", 'Content-Type' => 'application/x-www-form-urlencoded' }
  send_to(ISSUER + path, URI.encode_www_form(form), headers)
end

verifier = SecureRandom.urlsafe_base64(32)
state = SecureRandom.urlsafe_base64(16)
answer = authorize(
  response_type: 'code',
  client_id: CLIENT_ID,
  redirect_uri: REDIRECT_URI,
  state: state,
  code_challenge: [Digest::SHA256.digest(verifier)].pack('m0').tr('+/', '-_').delete('='),
  code_challenge_method: 'S256'
)
abort 'Failed: that is not the answer to this request' if answer['state'] != state || answer['iss'] != ISSUER
abort "Failed: no code, but #{answer}" unless answer['code']

tokens = JSON.parse(
  ask('${PATHS.token}',
      grant_type: 'authorization_code',
      code: answer['code'],
      redirect_uri: REDIRECT_URI,
      code_verifier: verifier)
)
puts "Exchanged: #{tokens}"

tokens = JSON.parse(ask('${PATHS.token}', grant_type: 'refresh_token', refresh_token: tokens['refresh_token']))
puts "Refreshed, and the refresh token is a new one: #{tokens}"
${api ? apiCall(api) : ''}
if ENV['KEEP_TOKENS']
  puts 'Kept: the last tokens above are good.'
else
  ask('${PATHS.revoke}', token: tokens['refresh_token'])
  puts 'Revoked: none of these tokens is good any more.'
end
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
headers = { 'Authorization' => "Bearer #{tokens['access_token']}", 'Content-Type' => 'application/json' }
puts "The API answered: #{send_to(${inPlainQuotes(api.graphqlUrl)}, ${inPlainQuotes(requestOf(api))}, headers)}"
`;
