/** What a supervisor tells its worker processes to do, and how the answer comes back. */
import type { Worker } from 'node:cluster';
import type { MetricObject } from 'prom-client';
import type { Settings } from '../config/settings.ts';
import type { StoreStates } from '../host/readiness.ts';

/** Each order with what it is given and what it answers. */
export interface Orders {
  start: { given: Settings; answer: { readonly isSeeded: boolean } };
  apply: { given: Settings; answer: undefined };
  stores: { given: undefined; answer: StoreStates };
  metrics: { given: undefined; answer: readonly MetricObject[] };
  leave: { given: undefined; answer: undefined };
}

type Name = keyof Orders;
type Given<N extends Name> = Orders[N]['given'];
type Answer<N extends Name> = Orders[N]['answer'];

/** What a worker does when it is told to. */
export type Obedience = {
  readonly [N in Name]: (
    given: Given<N>,
  ) => Promise<Answer<N> extends undefined ? void : Answer<N>>;
};

/** The worker could not do it: the message is what it said. */
export class OrderFailed extends Error {
  readonly code = 'order_failed';
}

/** The worker ended, or says nothing. */
export class NoAnswer extends Error {
  readonly code = 'no_answer';
}

interface OrderMessage {
  readonly order: Name;
  readonly id: number;
  readonly given: unknown;
}

interface AnswerMessage {
  readonly answerTo: number;
  readonly answer?: unknown;
  readonly problem?: string;
}

let ordersGiven = 0;

/**
 * @param limit milliseconds to wait for the answer.
 * @throws OrderFailed or NoAnswer
 */
export function tell<N extends Name>(
  worker: Worker,
  order: N,
  given: Given<N>,
  limit: number,
): Promise<Answer<N>> {
  ordersGiven += 1;
  const id = ordersGiven;
  return new Promise((resolve, reject) => {
    const settle = (how: () => void): void => {
      clearTimeout(timer);
      worker.off('message', hear).off('exit', ended);
      how();
    };
    const fail = (problem: string): void =>
      settle(() => reject(new NoAnswer(`process ${worker.process.pid} ${problem}`)));
    const ended = (): void => fail('ended');
    const hear = (message: AnswerMessage): void => {
      if (message.answerTo !== id) return;
      const { problem } = message;
      if (problem === undefined) settle(() => resolve(message.answer as Answer<N>));
      else settle(() => reject(new OrderFailed(problem)));
    };
    const timer = setTimeout(() => fail('does not answer'), limit);
    worker.on('message', hear).on('exit', ended);
    worker.send({ order, id, given } satisfies OrderMessage, (error) => {
      if (error) fail('ended');
    });
  });
}

/** @param explain what is answered when an order fails. */
export function obey(obedience: Obedience, explain: (error: unknown) => string): void {
  const known = new Map(Object.entries(obedience));
  process.on('message', ({ order, id, given }: OrderMessage) => {
    const carryOut = known.get(order) as ((given: unknown) => Promise<unknown>) | undefined;
    const answer = (answered: Omit<AnswerMessage, 'answerTo'>): void => {
      process.send?.({ answerTo: id, ...answered } satisfies AnswerMessage);
    };
    carryOut?.(given).then(
      (value) => answer({ answer: value }),
      (error: unknown) => answer({ problem: explain(error) }),
    );
  });
}
