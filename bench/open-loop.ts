/** Sends requests at a constant rate, however slow the answers are, over a fixed number of connections. */
import { connect, type Socket } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import {
  answerIn,
  CONNECTIONS,
  type LoadAnswer,
  type LoadRequest,
  quantilesOf,
  requestText,
  TIMEOUT_MS,
} from './load.ts';

/** One request, and what depends on its answer. */
export interface Call {
  readonly request: LoadRequest;
  /** Called with each answer. @returns false if it is wrong although its status is below 400 */
  answered?(answer: LoadAnswer): boolean;
}

export interface OpenLoopMeasurement {
  /** Number of planned requests, which is the rate multiplied by the seconds. */
  readonly planned: number;
  /** Answers per second, from the first planned moment to the last answer. */
  readonly answersPerSecond: number;
  /**
   * Milliseconds from the planned moment of a request to its answer, also if the request had to wait
   * for a free connection.
   */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly longest: number;
  /** Refused and wrong answers, and unanswered requests: with any, the rest means little. */
  readonly failures: number;
  /** Those of the failures whose connection was closed, or had no answer for ten seconds. */
  readonly unanswered: number;
  /** How late timers of this process ran, in milliseconds at 99 %: the times above include this. */
  readonly ownDelay99: number;
  readonly longestOwnDelay: number;
}

interface InFlight {
  readonly call: Call;
  /** The planned moment, in milliseconds by `performance.now()`. */
  readonly due: number;
  received: string;
}

/** Pause between two looks for due requests; each answer is followed by another look. */
const TICK_MS = 1;
const RESOLUTION_MS = 10;

/**
 * Plans the requests at constant distances. If no connection is free at its moment, a request waits
 * in a queue, and its time is counted from that moment: a service that stalls for a second delays
 * every request that was due in that second, which a closed loop would not send at all.
 *
 * @param next called when a request is sent, not when it is planned
 */
export async function measureOpenLoop(
  url: string,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
  next: () => Call,
): Promise<OpenLoopMeasurement> {
  const { host, hostname, port } = new URL(url);
  const planned = Math.max(1, Math.round(perSecond * seconds));
  const latencies = new Float64Array(planned);
  const idle: Socket[] = [];
  const inFlight = new Map<Socket, InFlight>();
  let answered = 0;
  let failures = 0;
  let sent = 0;
  let finished = 0;
  let start = 0;
  let lastAnswer = 0;
  let done = (): void => {};
  const allFinished = new Promise<void>((resolve) => (done = resolve));
  const plannedAt = (number: number): number => start + (number * 1_000) / perSecond;

  function sendDue(): void {
    while (sent < planned && plannedAt(sent) <= performance.now()) {
      // The one that waited longest: the service closes connections that are idle for seconds.
      const socket = idle.shift();
      if (!socket) return;
      const call = next();
      inFlight.set(socket, { call, due: plannedAt(sent), received: '' });
      sent += 1;
      socket.write(requestText(call.request, host));
    }
  }

  function finish(socket: Socket, isFailure: boolean): void {
    inFlight.delete(socket);
    if (isFailure) failures += 1;
    finished += 1;
    if (finished === planned) done();
  }

  function open(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      socket.setEncoding('latin1');
      socket.on('connect', () => resolve(socket));
      socket.on('error', reject);
      socket.setTimeout(TIMEOUT_MS, () => inFlight.has(socket) && socket.destroy());
      socket.on('data', (text: string) => {
        const current = inFlight.get(socket);
        if (!current) return;
        current.received += text;
        const answer = answerIn(current.received);
        if (!answer) return;
        lastAnswer = performance.now();
        latencies[answered] = lastAnswer - current.due;
        answered += 1;
        const isRight = current.call.answered?.(answer) ?? true;
        finish(socket, !isRight || answer.status >= 400);
        idle.push(socket);
        sendDue();
      });
      socket.on('close', () => {
        const place = idle.indexOf(socket);
        if (place >= 0) idle.splice(place, 1);
        if (inFlight.has(socket)) finish(socket, true);
        // Replace the connection: with fewer of them, requests would wait longer in the queue.
        if (finished < planned) open().then(use, () => failRest());
      });
    });
  }

  function use(socket: Socket): void {
    idle.push(socket);
    sendDue();
  }

  /** The service accepts no connection: the requests that are left will not be answered. */
  function failRest(): void {
    if (idle.length + inFlight.size > 0 || sent === planned) return;
    const left = planned - sent;
    sent = planned;
    failures += left;
    finished += left;
    if (finished === planned) done();
  }

  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, open));
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  start = performance.now();
  for (const socket of sockets) idle.push(socket);
  const timer = setInterval(sendDue, TICK_MS);
  await allFinished;
  clearInterval(timer);
  delay.disable();
  for (const socket of [...idle, ...inFlight.keys()]) socket.destroy();

  const quantile = quantilesOf(latencies.subarray(0, answered));
  return {
    planned,
    answersPerSecond: answered / ((lastAnswer - start) / 1_000),
    p50: quantile(0.5),
    p99: quantile(0.99),
    p999: quantile(0.999),
    longest: quantile(1),
    failures,
    unanswered: planned - answered,
    // The recorded values include this interval.
    ownDelay99: Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS),
    longestOwnDelay: Math.max(0, delay.max / 1e6 - RESOLUTION_MS),
  };
}
