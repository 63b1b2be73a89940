/** What the one session of PGlite is told by NOTIFY, taken out of the answers to its many clients. */

/** NotificationResponse: the process that notified (4 bytes), the channel, the payload. */
const NOTIFICATION = 'A'.charCodeAt(0);

/**
 * @param answer whole messages of the protocol of PostgreSQL.
 * @param tell called for each notification, before the client learns that its statement is done.
 * @returns the other messages.
 */
export function withoutNotifications(
  answer: Buffer,
  tell: (channel: string, payload: string) => void,
): Buffer {
  const others: Buffer[] = [];
  let begin = 0;
  for (let at = 0; at < answer.length; ) {
    const end = at + 1 + answer.readUInt32BE(at + 1);
    if (answer[at] === NOTIFICATION) {
      const [channel = '', payload = ''] = answer.toString('utf8', at + 9, end).split('\0');
      tell(channel, payload);
      others.push(answer.subarray(begin, at));
      begin = end;
    }
    at = end;
  }
  return begin === 0 ? answer : Buffer.concat([...others, answer.subarray(begin)]);
}
