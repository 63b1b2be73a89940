/** The flow with the libraries of .NET itself. */
import {
  inDoubleQuotes,
  listeningOf,
  PATHS,
  type ProgramValues,
  preparation,
  requestOf,
} from './values.ts';

export function csharpProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { path } = listeningOf(values);
  const { origin } = new URL(redirectUri);
  return `\
// .NET 10 or later. Save this as try.cs, and run it with: dotnet run try.cs
${preparation('//')}
using System.Net;
using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;

const string issuer = ${inDoubleQuotes(issuer)};
const string clientId = ${inDoubleQuotes(clientId)};
const string redirectUri = ${inDoubleQuotes(redirectUri)};
var secret = Environment.GetEnvironmentVariable("CLIENT_SECRET")
    ?? throw new InvalidOperationException("CLIENT_SECRET is not set");
using var http = new HttpClient();

var verifier = Base64Url(RandomNumberGenerator.GetBytes(32));
var state = Base64Url(RandomNumberGenerator.GetBytes(16));
var query = new Dictionary<string, string>
{
    ["response_type"] = "code",
    ["client_id"] = clientId,
    ["redirect_uri"] = redirectUri,
    ["state"] = state,
    ["code_challenge"] = Base64Url(SHA256.HashData(Encoding.ASCII.GetBytes(verifier))),
    ["code_challenge_method"] = "S256",
};

// Waits at the redirect URI for the browser.
using var listener = new HttpListener { Prefixes = { ${inDoubleQuotes(`${origin}/`)} } };
listener.Start();
Console.WriteLine("Open this address in a browser, sign in and approve:");
Console.WriteLine(issuer + "${PATHS.authorize}?" + await new FormUrlEncodedContent(query).ReadAsStringAsync());
HttpListenerContext callback;
while ((callback = await listener.GetContextAsync()).Request.Url!.AbsolutePath != ${inDoubleQuotes(path)})
{
    callback.Response.StatusCode = 404;
    callback.Response.Close();
}
var answer = callback.Request.QueryString;
callback.Response.Close(Encoding.ASCII.GetBytes("You may close this window, and go back to the program."), true);
if (answer["state"] != state || answer["iss"] != issuer)
    throw new InvalidOperationException("that is not the answer to this request");
var code = answer["code"] ?? throw new InvalidOperationException($"no code, but {answer}");

var tokens = await Ask("${PATHS.token}", new()
{
    ["grant_type"] = "authorization_code",
    ["code"] = code,
    ["redirect_uri"] = redirectUri,
    ["code_verifier"] = verifier,
});
Console.WriteLine("Exchanged: " + tokens);

tokens = await Ask("${PATHS.token}", new()
{
    ["grant_type"] = "refresh_token",
    ["refresh_token"] = Member(tokens, "refresh_token"),
});
Console.WriteLine("Refreshed, and the refresh token is a new one: " + tokens);
${api ? apiCall(api) : ''}
if (Environment.GetEnvironmentVariable("KEEP_TOKENS") is not null)
{
    Console.WriteLine("Kept: the last tokens above are good.");
    return;
}
await Ask("${PATHS.revoke}", new() { ["token"] = Member(tokens, "refresh_token") });
Console.WriteLine("Revoked: none of these tokens is good any more.");

// Posts a form with the credentials of the client.
async Task<string> Ask(string path, Dictionary<string, string> form)
{
    var credentials = Convert.ToBase64String(Encoding.ASCII.GetBytes($"{clientId}:{secret}"));
    return await Send(new HttpRequestMessage(HttpMethod.Post, issuer + path)
    {
        Headers = { Authorization = new AuthenticationHeaderValue("Basic", credentials) },
        Content = new FormUrlEncodedContent(form),
    });
}

async Task<string> Send(HttpRequestMessage request)
{
    using var response = await http.SendAsync(request);
    var body = await response.Content.ReadAsStringAsync();
    return response.IsSuccessStatusCode ? body : throw new InvalidOperationException($"{(int)response.StatusCode}: {body}");
}

static string Member(string json, string name) =>
    JsonDocument.Parse(json).RootElement.GetProperty(name).GetString()!;

static string Base64Url(byte[] bytes) =>
    Convert.ToBase64String(bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_');
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
Console.WriteLine("The API answered: " + await Send(new HttpRequestMessage(HttpMethod.Post, ${inDoubleQuotes(api.graphqlUrl)})
{
    Headers = { Authorization = new AuthenticationHeaderValue("Bearer", Member(tokens, "access_token")) },
    Content = new StringContent(${inDoubleQuotes(requestOf(api))}, Encoding.UTF8, "application/json"),
}));
`;
