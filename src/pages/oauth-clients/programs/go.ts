/** The flow with Go's standard library. */
import {
  inDoubleQuotes,
  listeningOf,
  PATHS,
  type ProgramValues,
  preparation,
  requestOf,
} from './values.ts';

export function goProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { host, port, path } = listeningOf(values);
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return `\
// Save this as try.go, and run it with: go run try.go
${preparation('//')}
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

const (
	issuer      = ${inDoubleQuotes(issuer)}
	clientID    = ${inDoubleQuotes(clientId)}
	redirectURI = ${inDoubleQuotes(redirectUri)}
)

var clientSecret = os.Getenv("CLIENT_SECRET")

type tokens struct {
	AccessToken  string \`json:"access_token"\`
	RefreshToken string \`json:"refresh_token"\`
	ExpiresIn    int    \`json:"expires_in"\`
}

func main() {
	log.SetFlags(0)
	if clientSecret == "" {
		log.Fatal("CLIENT_SECRET is not set")
	}
	verifier, state := random(), random()
	hash := sha256.Sum256([]byte(verifier))
	answer := authorize(url.Values{
		"response_type":         {"code"},
		"client_id":             {clientID},
		"redirect_uri":          {redirectURI},
		"state":                 {state},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(hash[:])},
		"code_challenge_method": {"S256"},
	})
	if answer.Get("state") != state || answer.Get("iss") != issuer {
		log.Fatal("that is not the answer to this request")
	}
	if answer.Get("code") == "" {
		log.Fatal("no code, but ", answer)
	}

	got := tokensFor(url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {answer.Get("code")},
		"redirect_uri":  {redirectURI},
		"code_verifier": {verifier},
	})
	fmt.Printf("Exchanged: %+v\\n", got)

	got = tokensFor(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {got.RefreshToken}})
	fmt.Printf("Refreshed, and the refresh token is a new one: %+v\\n", got)
${api ? apiCall(api) : ''}
	if os.Getenv("KEEP_TOKENS") != "" {
		fmt.Println("Kept: the last tokens above are good.")
		return
	}
	ask("${PATHS.revoke}", url.Values{"token": {got.RefreshToken}})
	fmt.Println("Revoked: none of these tokens is good any more.")
}

// authorize waits at the redirect URI for the browser.
func authorize(query url.Values) url.Values {
	listener, err := net.Listen("tcp", ${inDoubleQuotes(address)})
	must(err)
	fmt.Println("Open this address in a browser, sign in and approve:")
	fmt.Println(issuer + "${PATHS.authorize}?" + query.Encode())
	answers := make(chan url.Values, 1)
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != ${inDoubleQuotes(path)} {
			http.NotFound(w, r)
			return
		}
		says := "You may close this window, and go back to the program."
		w.Header().Set("Content-Length", fmt.Sprint(len(says)))
		fmt.Fprint(w, says)
		// The program may end at once.
		w.(http.Flusher).Flush()
		answers <- r.URL.Query()
	}))
	return <-answers
}

func tokensFor(form url.Values) (got tokens) {
	must(json.Unmarshal(ask("${PATHS.token}", form), &got))
	return got
}

// ask posts a form with the credentials of the client.
func ask(path string, form url.Values) []byte {
	request, err := http.NewRequest("POST", issuer+path, strings.NewReader(form.Encode()))
	must(err)
	request.SetBasicAuth(clientID, clientSecret)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(request)
}

func send(request *http.Request) []byte {
	response, err := http.DefaultClient.Do(request)
	must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(err)
	if response.StatusCode != http.StatusOK {
		log.Fatal(response.Status, ": ", string(body))
	}
	return body
}

func random() string {
	bytes := make([]byte, 32)
	_, err := rand.Read(bytes)
	must(err)
	return base64.RawURLEncoding.EncodeToString(bytes)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
	request, err := http.NewRequest("POST", ${inDoubleQuotes(api.graphqlUrl)}, strings.NewReader(${inDoubleQuotes(requestOf(api))}))
	must(err)
	request.Header.Set("Authorization", "Bearer "+got.AccessToken)
	request.Header.Set("Content-Type", "application/json")
	fmt.Printf("The API answered: %s\\n", send(request))
`;
