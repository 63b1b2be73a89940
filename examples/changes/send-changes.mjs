// Sends lines in their order, and repeats a request until all its lines are answered.
export async function sendChanges(lines, { url, secret, pauseMs = 5_000 }) {
  const answers = [];
  for (let begin = 0; begin < lines.length; begin += 1_000) {
    const body = lines
      .slice(begin, begin + 1_000)
      .map((line) => `${JSON.stringify(line)}\n`)
      .join('');
    const headers = { authorization: `Bearer ${secret}` };
    let response;
    do {
      if (response) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      response = await fetch(url, { method: 'POST', headers, body }).catch(() => ({ status: 503 }));
    } while (response.status === 503);
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
    answers.push(
      ...text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    );
  }
  return answers;
}
