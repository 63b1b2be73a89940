import json, time, urllib.error, urllib.request


def send_changes(lines, url, secret, pause=5):
    """Sends lines in their order, and repeats a request until all its lines are answered."""
    answers = []
    for begin in range(0, len(lines), 1000):
        body = "".join(json.dumps(line) + "\n" for line in lines[begin:begin + 1000]).encode()
        request = urllib.request.Request(url, body, {"Authorization": "Bearer " + secret})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    answers += [json.loads(line) for line in response]
                break
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise RuntimeError(error.read().decode()) from error
            except OSError:
                pass  # no connection, or the answer was lost
            time.sleep(pause)
    return answers
