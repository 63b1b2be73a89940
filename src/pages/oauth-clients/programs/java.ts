/** The flow with Java's own classes. They read no JSON: the tokens are cut out of the answer. */
import {
  inDoubleQuotes,
  listeningOf,
  PATHS,
  type ProgramValues,
  preparation,
  requestOf,
} from './values.ts';

export function javaProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { host, port, path } = listeningOf(values);
  return `\
// Java 17 or later. Save this as Try.java, and run it with: java Try.java
${preparation('//')}
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import static java.nio.charset.StandardCharsets.UTF_8;

public class Try {
    static final String ISSUER = ${inDoubleQuotes(issuer)};
    static final String CLIENT_ID = ${inDoubleQuotes(clientId)};
    static final String REDIRECT_URI = ${inDoubleQuotes(redirectUri)};
    static final String SECRET = System.getenv("CLIENT_SECRET");
    static final HttpClient HTTP = HttpClient.newHttpClient();

    public static void main(String[] arguments) throws Exception {
        if (SECRET == null) throw new IllegalStateException("CLIENT_SECRET is not set");
        String verifier = random();
        String state = random();
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(verifier.getBytes(UTF_8));
        Map<String, String> answer = authorize(Map.of(
            "response_type", "code",
            "client_id", CLIENT_ID,
            "redirect_uri", REDIRECT_URI,
            "state", state,
            "code_challenge", base64(hash),
            "code_challenge_method", "S256"));
        if (!state.equals(answer.get("state")) || !ISSUER.equals(answer.get("iss"))) {
            throw new IllegalStateException("that is not the answer to this request");
        }
        if (!answer.containsKey("code")) throw new IllegalStateException("no code, but " + answer);

        String tokens = ask("${PATHS.token}", Map.of(
            "grant_type", "authorization_code",
            "code", answer.get("code"),
            "redirect_uri", REDIRECT_URI,
            "code_verifier", verifier));
        System.out.println("Exchanged: " + tokens);

        tokens = ask("${PATHS.token}", Map.of(
            "grant_type", "refresh_token", "refresh_token", member("refresh_token", tokens)));
        System.out.println("Refreshed, and the refresh token is a new one: " + tokens);
${api ? apiCall(api) : ''}
        if (System.getenv("KEEP_TOKENS") != null) {
            System.out.println("Kept: the last tokens above are good.");
            return;
        }
        ask("${PATHS.revoke}", Map.of("token", member("refresh_token", tokens)));
        System.out.println("Revoked: none of these tokens is good any more.");
    }

    /** Waits at the redirect URI for the browser. */
    static Map<String, String> authorize(Map<String, String> query) throws Exception {
        CompletableFuture<String> answer = new CompletableFuture<>();
        HttpServer server = HttpServer.create(new InetSocketAddress(${inDoubleQuotes(host)}, ${port}), 0);
        server.createContext("/", exchange -> {
            boolean isAnswer = exchange.getRequestURI().getPath().equals(${inDoubleQuotes(path)});
            String says = isAnswer ? "You may close this window, and go back to the program." : "Nothing is here.";
            exchange.sendResponseHeaders(isAnswer ? 200 : 404, says.length());
            exchange.getResponseBody().write(says.getBytes(UTF_8));
            exchange.close();
            if (isAnswer) answer.complete(String.valueOf(exchange.getRequestURI().getRawQuery()));
        });
        server.start();
        System.out.println("Open this address in a browser, sign in and approve:");
        System.out.println(ISSUER + "${PATHS.authorize}?" + encoded(query));
        Map<String, String> parameters = new TreeMap<>();
        for (String pair : answer.get().split("&")) {
            String[] parts = pair.split("=", 2);
            if (parts.length == 2) parameters.put(parts[0], URLDecoder.decode(parts[1], UTF_8));
        }
        server.stop(0);
        return parameters;
    }

    /** Posts a form with the credentials of the client. */
    static String ask(String path, Map<String, String> form) throws Exception {
        String credentials = CLIENT_ID + ":" + SECRET;
        return send(HttpRequest.newBuilder(URI.create(ISSUER + path))
            .header("Authorization", "Basic " + Base64.getEncoder().encodeToString(credentials.getBytes(UTF_8)))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .POST(BodyPublishers.ofString(encoded(form))));
    }

    static String send(HttpRequest.Builder request) throws Exception {
        var response = HTTP.send(request.build(), BodyHandlers.ofString());
        if (response.statusCode() == 200) return response.body();
        throw new IllegalStateException(response.statusCode() + ": " + response.body());
    }

    static String encoded(Map<String, String> form) {
        return form.entrySet().stream()
            .map(pair -> pair.getKey() + "=" + URLEncoder.encode(pair.getValue(), UTF_8))
            .collect(Collectors.joining("&"));
    }

    static String member(String name, String json) {
        var found = Pattern.compile("\\"" + name + "\\":\\"([^\\"]*)\\"").matcher(json);
        if (!found.find()) throw new IllegalStateException("no " + name + " in " + json);
        return found.group(1);
    }

    static String random() {
        byte[] bytes = new byte[32];
        new SecureRandom().nextBytes(bytes);
        return base64(bytes);
    }

    static String base64(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }
}
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
        System.out.println("The API answered: " + send(HttpRequest.newBuilder(URI.create(${inDoubleQuotes(api.graphqlUrl)}))
            .header("Authorization", "Bearer " + member("access_token", tokens))
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(${inDoubleQuotes(requestOf(api))}))));
`;
